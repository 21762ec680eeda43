'use strict';
// The page is complete without this script. It adds search, a filter, classes of paths, keys, and buttons that copy.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // A link into a closed part opens it.
  const reveal = () => {
    let id;
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = id && byId(id);
    if (!target) return;
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === 'DETAILS') part.open = true;
      part.hidden = false;
    }
    target.scrollIntoView();
    const focused = target.matches('details') ? target.querySelector('summary') : target;
    if (!focused.matches('summary, [tabindex]')) focused.tabIndex = -1;
    focused.focus({ preventScroll: true });
  };
  addEventListener('hashchange', reveal);

  // Search, and filter by cluster.
  const [tools, search, cluster, keys, found] = ['tools', 'search', 'cluster', 'keys', 'found'].map(byId);
  const items = all('[data-clusters]');
  const texts = new Map();
  const text = (part) => {
    if (!texts.has(part)) texts.set(part, part.textContent.toLowerCase());
    return texts.get(part);
  };
  const filter = () => {
    const wanted = search.value.trim().toLowerCase();
    const name = cluster.value;
    let shown = 0;
    for (const item of items) {
      const isOf = !name || item.dataset.clusters.split(' ').includes(name);
      item.hidden = !(isOf && (!wanted || text(item).includes(wanted)));
      shown += !item.hidden;
      if (item.matches('.card') && !item.hidden) {
        const rows = all('[data-row]', item);
        const hits = new Set(wanted ? rows.filter((it) => text(it).includes(wanted)) : []);
        for (const row of rows) row.hidden = hits.size > 0 && !hits.has(row);
        if (hits.size > 0) item.open = true;
      }
    }
    for (const fold of all('.fold')) if (wanted) fold.open = true;
    found.textContent = wanted || name ? `${shown} of ${items.length} entries` : '';
  };
  tools.hidden = false;
  tools.addEventListener('submit', (event) => event.preventDefault());
  search.addEventListener('input', filter);
  cluster.addEventListener('change', filter);

  // The matrix of one class of paths.
  const [layer, tool, cell, picture] = ['class', 'class-tool', 'cell', 'matrix'].map(byId);
  if (layer) {
    tool.hidden = false;
    layer.addEventListener('change', () => {
      for (const it of all('[data-layer]')) {
        const isShown = it.dataset.layer === layer.value;
        if (it.tagName === 'TBODY') it.hidden = !isShown;
        else it.setAttribute('visibility', isShown ? 'visible' : 'hidden');
      }
    });
  }
  if (picture) {
    const names = picture.dataset.names.split(' ');
    const pair = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
      const [from, to] = [names[Math.floor(point.y)], names[Math.floor(point.x)]];
      return from && to && from !== to ? [from, to] : null;
    };
    picture.addEventListener('mousemove', (event) => {
      const [from, to] = pair(event) || [];
      const state = event.target.classList.contains('m') ? event.target.classList[1] : 'no declared path';
      cell.textContent = from ? `${from} → ${to}: ${state}` : '';
    });
    picture.addEventListener('click', (event) => {
      const [from, to] = pair(event) || [];
      const trouble = all('details.pair').find((it) => it.dataset.clusters === `${from} ${to}`);
      if (trouble) location.hash = trouble.id;
      else if (from) location.hash = `cluster-${from}`;
    });
  }

  // Buttons that copy a command.
  for (const code of all('code.command')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.setAttribute('aria-label', `Copy: ${code.textContent.slice(0, 100)}`);
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = 'Selected';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
    code.after(button);
  }

  // Keys, which can be turned off.
  const parts = all('main > section');
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && event.target === search) {
      search.value = '';
      filter();
    }
    const isTyping = event.target.closest('input, select, textarea');
    if (!keys.checked || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/') {
      event.preventDefault();
      search.focus();
    } else if (event.key === 'j' || event.key === 'k') {
      const top = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) + 2;
      const places = parts.map((it) => it.getBoundingClientRect().top - top);
      const next = event.key === 'j' ? places.findIndex((it) => it > 4) : places.findLastIndex((it) => it < -4);
      const part = parts[next];
      if (part) {
        part.tabIndex = -1;
        part.scrollIntoView();
        part.focus({ preventScroll: true });
      }
    }
  });

  // Print everything.
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = all('details:not([open])');
    for (const it of opened) it.open = true;
  });
  addEventListener('afterprint', () => { for (const it of opened) it.open = false; });

  reveal();
})();
