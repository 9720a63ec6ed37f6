const root = document.documentElement;
const button = document.getElementById("theme");
let theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

function isNarrow() {
  return window.innerWidth < 720;
}

// Figures of several panels know two arrangements of them.
function arrange() {
  for (const [id, figure] of Object.entries(FIGURES)) {
    const meta = figure.layout.meta;
    if (!meta || !meta.wide) continue;
    const { height, ...places } = isNarrow() ? meta.narrow : meta.wide;
    // As the height of a figure, it would keep the figure from following the width of the page.
    document.getElementById(id).style.height = `${height}px`;
    Plotly.relayout(id, { ...places, autosize: true });
  }
}

function show() {
  root.dataset.theme = theme;
  button.textContent = theme === "dark" ? "☀" : "☾";
  for (const id of Object.keys(FIGURES)) Plotly.relayout(id, THEMES[theme]);
}

async function draw() {
  for (const [id, figure] of Object.entries(FIGURES)) {
    const layout = { ...figure.layout, autosize: true };
    await Plotly.newPlot(id, figure.data, layout, { responsive: true, displaylogo: false });
  }
  arrange();
  show();
  root.dataset.drawn = Object.keys(FIGURES).length;
}

button.addEventListener("click", () => {
  theme = theme === "dark" ? "light" : "dark";
  show();
});
let narrow = isNarrow();
window.addEventListener("resize", () => {
  if (narrow !== isNarrow()) {
    narrow = isNarrow();
    arrange();
  }
});
root.dataset.theme = theme;
draw();
