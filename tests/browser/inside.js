// Functions that the checks run inside of a page. Each returns lists of texts or numbers.

const INTERACTIVE = [
  "a[href]", "button", "input:not([type=hidden])", "select", "textarea", "summary", "[contenteditable]", "[onclick]",
  "[role=button]", "[role=link]", "[role=checkbox]", "[role=tab]", "[role=option]", "[role=menuitem]", "[role=switch]",
].join();

const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

// An element as a person finds it in the source.
function name(element) {
  if (!element) return "nothing";
  const id = element.id ? `#${element.id}` : "";
  const href = element.getAttribute("href");
  const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
  return `<${element.localName}${id}${href ? ` href=${href}` : ""}> ${text}`;
}

function shown(element) {
  const box = element.getBoundingClientRect();
  return element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && 0 < box.width * box.height;
}

// Whether the top of an element is in the viewport, and no fixed or sticky bar covers it.
function inView(element) {
  const box = element.getBoundingClientRect();
  if (!shown(element) || box.top < -1 || innerHeight <= box.top || innerWidth <= box.left) return false;
  const x = Math.min(Math.max(box.left + 3, 0), innerWidth - 1);
  let found = document.elementFromPoint(x, Math.max(box.top, 0) + Math.min(3, box.height / 2));
  for (; found && !found.contains(element) && !element.contains(found); found = found.parentElement) {
    if (/fixed|sticky/.test(getComputedStyle(found).position)) return false;
  }
  return true;
}

function interactive() {
  return [...document.querySelectorAll(INTERACTIVE)].filter((it) => !it.disabled && shown(it));
}

// Links and references that lead nowhere. A link is followed, and what it leads to must be in view then.
async function links() {
  const faults = [];
  const seen = new Set();
  for (const link of document.querySelectorAll("a[href]")) {
    const href = link.getAttribute("href");
    if (seen.has(href)) continue;
    seen.add(href);
    if (!href.startsWith("#")) {
      faults.push(`${name(link)} leads out of the page`);
      continue;
    }
    const target = document.getElementById(decodeURIComponent(href.slice(1)));
    if (!target) {
      faults.push(`${name(link)} leads nowhere`);
      continue;
    }
    history.replaceState(null, "", "#");
    scrollTo(0, 0);
    link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, view: window }));
    await frames();
    if (!inView(target)) faults.push(`${name(link)} does not show its target`);
  }
  for (const use of document.querySelectorAll("use[href]")) {
    if (!document.getElementById(use.getAttribute("href").slice(1))) faults.push(`${name(use)} shows nothing`);
  }
  for (const attribute of ["for", "aria-controls", "aria-describedby", "aria-labelledby", "headers"]) {
    for (const element of document.querySelectorAll(`[${attribute}]`)) {
      for (const id of element.getAttribute(attribute).split(/\s+/)) {
        if (!document.getElementById(id)) faults.push(`${name(element)}: ${attribute}=${id} does not exist`);
      }
    }
  }
  return [seen.size, faults];
}

function repeatedIds() {
  const seen = new Set();
  const faults = [];
  for (const { id } of document.querySelectorAll("[id]")) {
    if (seen.has(id)) faults.push(`the id ${id} is there twice`);
    seen.add(id);
  }
  return faults;
}

// What is wider than the page. Parts that scroll on their own are not.
function wide() {
  const root = document.scrollingElement;
  if (root.scrollWidth <= innerWidth) return [];
  // Only a part of its position cuts off an absolute element.
  const around = (it) => getComputedStyle(it).position === "absolute" ? it.offsetParent : it.parentElement;
  const isCut = (it) => it && it !== root && it !== document.body
    && (getComputedStyle(it).overflowX !== "visible" || isCut(around(it)));
  const wide = [...document.body.querySelectorAll("*")]
    .filter((it) => innerWidth < Math.ceil(it.getBoundingClientRect().right) && !isCut(around(it)));
  return [`the page is ${root.scrollWidth} pixels wide instead of ${innerWidth}: ${wide.slice(0, 3).map(name).join(", ")}`];
}

// Records what gets the focus, and which details were open. Sending all functions for each step would take twice as long.
function record() {
  window.step = step;
  window.focused = new Map();
  window.opened = new Set(document.querySelectorAll("details[open]"));
  addEventListener("toggle", (event) => event.target.open && window.opened.add(event.target), true);
}

// What has the focus: whether a tour of the page ends here, whether it is a closed part, and its name.
function step() {
  const at = document.activeElement;
  const ends = at === document.body || window.focused.has(at);
  if (!ends) window.focused.set(at, look(at));
  return [ends, at.localName === "summary" && !at.parentElement.open, name(at)];
}

// What can be used and never had the focus, and which parts were never open. Radio buttons of a group share one stop.
function unreached() {
  const group = (it) => it.type === "radio" && [...window.focused.keys()].some((other) => other.name === it.name);
  return [
    ...interactive().filter((it) => !window.focused.has(it) && !group(it)).map((it) => `${name(it)} cannot be reached`),
    ...[...document.querySelectorAll("details")].filter((it) => shown(it) && !window.opened.has(it))
      .map((it) => `${name(it.querySelector("summary"))} does not open`),
  ];
}

function look(element) {
  const style = getComputedStyle(element);
  const outline = style.outlineStyle !== "none" && style.outlineWidth !== "0px";
  return [outline, style.boxShadow, style.borderColor, style.backgroundColor, style.textDecorationLine, style.stroke].join();
}

// Elements that looked the same when they had the focus.
function unmarked() {
  document.activeElement.blur();
  return [...window.focused].filter(([it, focused]) => shown(it) && look(it) === focused)
    .map(([it]) => `${name(it)} does not show that it has the focus`);
}

// The areas that scroll on their own: the number of each, for `scrolled`.
function areas() {
  window.scrolling = [...document.querySelectorAll("*")].filter((it) => it !== document.scrollingElement && shown(it)
    && /auto|scroll/.test(getComputedStyle(it).overflowX) && it.clientWidth + 1 < it.scrollWidth);
  return window.scrolling.length;
}

function focusArea(at) {
  const area = window.scrolling[at];
  area.scrollLeft = 0;
  const target = area.tabIndex < 0 ? area.querySelector(INTERACTIVE) : area;
  target?.focus();
}

function scrolled(at) {
  const area = window.scrolling[at];
  return 0 < area.scrollLeft || area.querySelector(INTERACTIVE) ? [] : [`${name(area)} does not scroll with arrow keys`];
}

// Sections whose heading no link leads to.
function unlinked() {
  const hrefs = new Set([...document.querySelectorAll("nav a[href]")].map((it) => it.getAttribute("href")));
  return [...document.querySelectorAll("main section[id], main > [id]")]
    .filter((it) => it.querySelector("h2") && shown(it) && !hrefs.has(`#${it.id}`))
    .map((it) => `no link of the navigation leads to ${name(it)}`);
}

// Brightness of the background from 0 to 1.
function brightness() {
  const color = getComputedStyle(document.body).backgroundColor.match(/[\d.]+/g).map(Number);
  const [red, green, blue, alpha = 1] = color;
  return alpha === 0 ? 1 : (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}

// What a hostile text did: elements and attributes that it made, and what its script set.
function hostile(mark) {
  const faults = [];
  if (window[mark] !== undefined) faults.push(`a name ran as a script and set ${mark}`);
  for (const element of document.querySelectorAll("*")) {
    for (const { name: attribute, value } of element.attributes) {
      if (/^on/i.test(attribute)) faults.push(`<${element.localName}> has ${attribute}=${value.slice(0, 40)}`);
      if (/^\s*(javascript|data|vbscript):/i.test(value)) faults.push(`<${element.localName}> has ${attribute}=${value.slice(0, 40)}`);
      if (attribute.includes(mark)) faults.push(`<${element.localName}> has an attribute ${attribute}`);
    }
    if (/^(script|img|iframe|object|embed|base|form|link|meta|image)$/.test(element.localName)) {
      if (`${element.outerHTML}`.includes(mark)) faults.push(`a name made <${element.localName}>`);
    }
  }
  return faults;
}

// What the page shows, for comparison with the documents that it shows.
function figures() {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const text = (element) => element && element.textContent.trim().replace(/\s+/g, " ");
  const texts = (selector, root) => all(selector, root).map(text);
  const layers = texts("#class option");
  const cells = all(".matrix [data-layer] .cell").map((it) => {
    const [layer, row] = [it.closest("[data-layer]").dataset.layer, it.closest("tr")];
    const head = it.closest("table").rows[0].cells[it.cellIndex];
    return [layers[layer], row.dataset.members.split(" "), it.dataset.members.split(" "), it.classList[1], text(it).match(/[\d/]+|$/)[0]];
  });
  const lines = all("#matrix [data-layer]").flatMap((it) => all(".m", it)
    .map((line) => [layers[it.dataset.layer], line.classList[1], line.getAttribute("d")]));
  const table = (root) => all("tbody tr", root).map((row) => [...row.cells].map(text));
  return {
    word: text(document.querySelector("#verdict h2")),
    verdict: text(document.querySelector("#verdict .lead")),
    points: texts("#verdict .points li"),
    first: text(document.getElementById("first-step")),
    cutOff: all("#cut-off li").map((it) => [text(it.querySelector("strong")), text(it)]),
    picture: text(document.querySelector(".mesh-graph > title")),
    pictureTexts: texts(".mesh-graph text").flatMap((it) => it.split(/\s+/)),
    names: (document.getElementById("matrix")?.dataset.names || "").split(" "),
    cells, lines,
    pairs: all("details.pair").map((it) => [it.dataset.clusters, text(it.querySelector("summary")), table(it)]),
    cards: all("details.card").map((it) => [text(it.querySelector("h3")), text(it.querySelector("summary .muted")), texts("tbody tr.excluded th", it)]),
    severities: texts("#findings > h3:not(:last-of-type), #findings > h3"),
    findings: all(".finding").map((it) => text(it.querySelector("p"))),
    consequences: texts(".finding details li"),
    expectations: all("#expectations > details").map((it) => [text(it.querySelector("strong")), text(it.querySelector("summary")), text(it.querySelector("p"))]),
    losses: all(".loss").map((it) => [it.dataset.part, text(it.querySelector("summary")), texts("li", it)]),
    lossCount: text(document.querySelector("#losses > p")),
    ranges: table(document.querySelector("#address-space details")),
    free: all("#free-ranges tbody tr").map((it) => [text(it.cells[0]), texts("td code", it), text(it)]),
    loads: all("#load tbody tr").flatMap((row) => row.dataset.clusters.split(" ").map((it) => [it, ...[...row.cells].slice(1).map(text)])),
    cardLoads: all("details.card").map((it) => [text(it.querySelector("h3")), all("table", it).filter((one) => text(one).startsWith("Quantity")).map(table)]),
    change: text(document.getElementById("change-summary")),
    changes: text(document.getElementById("change")),
  };
}

// The milliseconds until the page was loaded, and until a search and a filter by cluster were answered and shown.
async function usable(word, cluster) {
  const { loadEventEnd } = performance.getEntriesByType("navigation")[0];
  const change = async (id, value, event) => {
    const start = performance.now();
    const element = document.getElementById(id);
    element.value = value;
    element.dispatchEvent(new Event(event, { bubbles: true }));
    await frames();
    return performance.now() - start;
  };
  const shownCards = () => [...document.querySelectorAll("details.card")].filter(shown).length;
  const searched = await change("search", word, "input");
  const found = shownCards();
  await change("search", "", "input");
  const filtered = await change("cluster", cluster, "change");
  return [loadEventEnd, searched, filtered, found, shownCards()];
}

async function axe(options) {
  const { violations } = await window.axe.run(document, options);
  return violations.filter((it) => /serious|critical/.test(it.impact))
    .map((it) => `${it.id} (${it.impact}): ${it.nodes.length} × ${it.help}: ${it.nodes[0].target} ${it.nodes[0].html.slice(0, 120)}`);
}
