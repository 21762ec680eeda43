package flux

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// names are the constants that the controller uses in what it removes.
var names = map[string]string{
	"corev1.LastAppliedConfigAnnotation":  corev1.LastAppliedConfigAnnotation,
	"kustomizev1.GroupVersion.Group":      kustomizev1.GroupVersion.Group,
	"kustomizev1.MergeValue":              kustomizev1.MergeValue,
	"metav1.ManagedFieldsOperationApply":  string(metav1.ManagedFieldsOperationApply),
	"metav1.ManagedFieldsOperationUpdate": string(metav1.ManagedFieldsOperationUpdate),
	"r.ControllerName":                    "kustomize-controller",
}

// The options are in an internal package, so they are read from its source.
func TestCleanupIsThatOfTheController(t *testing.T) {
	folder := os.Getenv("KUSTOMIZE_CONTROLLER")
	if folder == "" {
		t.Fatal("KUSTOMIZE_CONTROLLER must name the folder with the source of kustomize-controller")
	}
	path := filepath.Join(folder, "internal", "controller", "kustomization_controller.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found ssa.ApplyCleanupOptions
	ast.Inspect(file, func(node ast.Node) bool {
		assignment, ok := node.(*ast.AssignStmt)
		if !ok || len(assignment.Lhs) != 1 {
			return true
		}
		switch literal, _ := assignment.Rhs[0].(*ast.CompositeLit); types.ExprString(assignment.Lhs[0]) {
		case "fieldManagers":
			if literal == nil {
				// What the controller adds for its flag --disallowed-field-managers.
				return true
			}
			for _, it := range literal.Elts {
				fields := fields(it)
				found.FieldManagers = append(found.FieldManagers, ssa.FieldManager{
					Name:          text(t, fields["Name"]),
					OperationType: metav1.ManagedFieldsOperationType(text(t, fields["OperationType"])),
				})
			}
		case "applyOpts.Cleanup":
			fields := fields(literal)
			found.Annotations = texts(t, fields["Annotations"])
			found.Labels = texts(t, fields["Labels"])
			found.Exclusions = map[string]string{}
			for _, it := range fields["Exclusions"].(*ast.CompositeLit).Elts {
				pair := it.(*ast.KeyValueExpr)
				found.Exclusions[text(t, pair.Key)] = text(t, pair.Value)
			}
			if len(fields) != 4 {
				t.Errorf("the controller sets other fields too: %v", types.ExprString(literal))
			}
		}
		return true
	})
	if !reflect.DeepEqual(found, cleanup) {
		t.Errorf("the controller removes\n%+v\nand this test\n%+v", found, cleanup)
	}
}

// fields are the values of a struct, by name.
func fields(literal ast.Expr) map[string]ast.Expr {
	fields := map[string]ast.Expr{}
	for _, it := range literal.(*ast.CompositeLit).Elts {
		pair := it.(*ast.KeyValueExpr)
		fields[types.ExprString(pair.Key)] = pair.Value
	}
	return fields
}

func texts(t *testing.T, list ast.Expr) []string {
	t.Helper()
	var all []string
	for _, it := range list.(*ast.CompositeLit).Elts {
		all = append(all, text(t, it))
	}
	return all
}

func text(t *testing.T, expression ast.Expr) string {
	t.Helper()
	switch it := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(it.Value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	case *ast.CallExpr:
		if types.ExprString(it.Fun) == "fmt.Sprintf" {
			var values []any
			for _, value := range it.Args[1:] {
				values = append(values, text(t, value))
			}
			return fmt.Sprintf(text(t, it.Args[0]), values...)
		}
	case *ast.SelectorExpr:
		if text, ok := names[types.ExprString(it)]; ok {
			return text
		}
	}
	t.Fatalf("unknown: %s", types.ExprString(expression))
	return ""
}
