// Package metrics reads what `clustermesh status --output prometheus` writes, and the alerts of the gallery, with the
// parsers of Prometheus and of its node exporter.
package metrics

import (
	"bytes"
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// A test of the program compares this file with what it writes.
const example = "../../src/results/status/metrics/example.prom"

const rules = "../../templates/gallery/prometheus-rules.yaml"

// read returns a file.
func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// series returns all series of the metrics as the textfile collector of the node exporter reads them.
func series(t *testing.T) []labels.Labels {
	t.Helper()
	var text expfmt.TextParser
	families, err := text.TextToMetricFamilies(bytes.NewReader(read(t, example)))
	if err != nil {
		t.Fatal(err)
	}
	var found []labels.Labels
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			pairs := []string{labels.MetricName, name}
			for _, label := range metric.GetLabel() {
				pairs = append(pairs, label.GetName(), label.GetValue())
			}
			found = append(found, labels.FromStrings(pairs...))
		}
	}
	return found
}

func TestTheMetricsAreWellNamed(t *testing.T) {
	problems, err := promlint.New(bytes.NewReader(read(t, example))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range problems {
		t.Errorf("%s: %s", it.Metric, it.Text)
	}
	if count := len(series(t)); count < 20 {
		t.Errorf("only %d series", count)
	}
}

func TestTheAlertsAreAboutMetricsThatExist(t *testing.T) {
	groups, errs := rulefmt.Parse(read(t, rules), false)
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.FailNow()
	}
	known := series(t)
	alerts := 0
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			alerts++
			expression, err := parser.ParseExpr(rule.Expr)
			if err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
				continue
			}
			for _, selector := range parser.ExtractSelectors(expression) {
				if !anyMatches(known, selector) {
					t.Errorf("%s: no series matches %v", rule.Alert, selector)
				}
			}
		}
	}
	if alerts < 5 {
		t.Errorf("only %d alerts", alerts)
	}
}

// anyMatches returns whether a series has the name and the labels of a selector. The example has no errors.
func anyMatches(known []labels.Labels, selector []*labels.Matcher) bool {
	for _, it := range known {
		matches := true
		for _, matcher := range selector {
			if matcher.Name != "severity" && !matcher.Matches(it.Get(matcher.Name)) {
				matches = false
			}
		}
		if matches {
			return true
		}
	}
	return false
}
