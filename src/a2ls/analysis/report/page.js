const root = document.documentElement;
const button = document.getElementById("theme");
let theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
const byFinger = window.matchMedia("(pointer: coarse)").matches;

// For fingers without what is there to be dragged: the handles of axes, whose ends also open a text box when tapped,
// and the bar of buttons, which without a hovering pointer would cover the top of a figure all the time. Two taps in a
// row never move the axes: they go back to the first view, which helps where a mouse was attached and has zoomed.
const FOR_FINGERS = { displayModeBar: false, showAxisDragHandles: false, doubleClick: "reset" };
// Nobody should send what is theirs to a cloud by a button that looks like any other.
const CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false, ...(byFinger ? FOR_FINGERS : {}) };

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

// A finger scrolls the page, also where it starts on a figure: of touches, Plotly hears only the mouse events that a
// browser makes of a tap. A surface is turned by a finger that sets out sideways, where the page does not scroll.
function leaveFingersToThePage(graph) {
  let start, sideways;
  const isTurned = (event) => event.target.closest(".gl-container") && sideways !== false;
  const listen = (type, notice) => {
    const onTouch = (event) => {
      notice(event.touches);
      if (!isTurned(event)) event.stopPropagation();
    };
    graph.addEventListener(type, onTouch, { capture: true, passive: true });
  };
  listen("touchstart", (touches) => {
    start = touches[0];
    sideways = touches.length === 1 ? undefined : false;
  });
  listen("touchmove", ([touch]) => {
    sideways ??= Math.abs(touch.clientX - start.clientX) > Math.abs(touch.clientY - start.clientY);
  });
}

async function draw() {
  for (const [id, figure] of Object.entries(FIGURES)) {
    const layout = { ...figure.layout, autosize: true };
    const graph = await Plotly.newPlot(id, figure.data, layout, CONFIG);
    if (byFinger) leaveFingersToThePage(graph);
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
