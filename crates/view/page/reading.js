// The chosen token's attention as a list, and as shades over the text.

function drawStrongest(list, title, { shown, words }, row) {
  list.replaceChildren();
  title.textContent = row < 0 ? words.nothing : words.strongest(shown.queries[row].label);
  if (row < 0) return;
  const values = shown.values.subarray(row * shown.cols, (row + 1) * shown.cols);
  const order = [...values.keys()].filter((j) => values[j] !== 0).sort((a, b) => (values[b] || Infinity) - (values[a] || Infinity));
  const max = Math.max(...order.map((j) => values[j]).filter((v) => v > 0), Number.MIN_VALUE);
  for (const j of order.slice(0, 10)) {
    const item = document.createElement("li"), bar = document.createElement("i");
    const label = document.createElement("span"), value = document.createElement("b");
    bar.style.width = `${((values[j] || 0) / max) * 100}%`;
    label.textContent = shown.keys[j].label;
    value.textContent = number(values[j]);
    item.append(bar, label, value);
    list.append(item);
  }
}

// The spans are made once for a set of tokens, then only shaded.
function fillText(box, entries) {
  // Where tokens carry their spaces, they join to the text itself; else a gap parts them.
  box.classList.toggle("parted", !entries.some((entry) => /^[ ▁]/.test(entry.raw)));
  box.replaceChildren(...entries.map((entry, i) => {
    const span = document.createElement("span");
    span.textContent = entry.raw.replace(/▁/g, " ").trim() ? entry.raw.replace(/▁/g, " ").replace(/\n/g, "⏎") : entry.label;
    span.dataset.index = i;
    span.setAttribute("role", "option");
    span.tabIndex = i === 0 ? 0 : -1;
    return span;
  }));
}

// Queries and keys may differ (a translation): the text shows the keys where a query is chosen elsewhere.
function shadeText(box, { shown, look, same }, row, pinned) {
  const spans = box.children;
  let max = 0;
  for (let j = 0; row >= 0 && j < shown.cols; j++) max = Math.max(max, shown.values[row * shown.cols + j] || 0);
  for (let j = 0; j < spans.length; j++) {
    const t = row >= 0 && max > 0 ? (shown.values[row * shown.cols + j] || 0) / max : 0;
    spans[j].style.background = t > 0.02 ? look.css(t * 0.85) : "";
    spans[j].style.color = t > 0.02 ? look.inkOn(t * 0.85) : "";
    const chosen = same && pinned && j === row;
    spans[j].classList.toggle("pinned", chosen);
    spans[j].classList.toggle("pale", shown.keys[j].special && t <= 0.02);
    spans[j].setAttribute("aria-selected", chosen);
  }
}
