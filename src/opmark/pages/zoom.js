// Zoom and pan every schedule: buttons, + - 0 and arrow keys, Ctrl with the wheel, dragging. Without this script
// the whole schedule is shown.
"use strict";
const zoomable = (chart) => {
  const pan = chart.querySelector(".pan");
  const plot = chart.querySelector(".plot");
  const MOST = 64;
  const LETTER = 6.6;
  let zoom = 1;

  // Names of bars that became wide enough to hold them.
  const name = () => {
    for (const label of plot.querySelectorAll(".grown")) label.remove();
    if (zoom === 1) return;
    const wide = plot.clientWidth || plot.getBoundingClientRect().width;
    for (const bar of plot.querySelectorAll(":scope > rect:not(.lane)")) {
      const text = bar.querySelector("title")?.textContent.split(/ \(|: /)[0] ?? "";
      const room = (parseFloat(bar.getAttribute("width")) / 100) * wide;
      if (Number(bar.getAttribute("height")) < 22 || room < LETTER * text.length + 8) continue;
      const label = document.createElementNS("http://www.w3.org/2000/svg", "text");
      label.setAttribute("class", "name grown");
      label.setAttribute("x", String((parseFloat(bar.getAttribute("x")) / 100) * wide + 4));
      label.setAttribute("y", String(Number(bar.getAttribute("y")) + 15));
      label.textContent = text;
      plot.append(label);
    }
  };

  // `at` is the point of the window, from 0 to 1, that stays where it is.
  const scale = (wanted, at = 0.5) => {
    const next = Math.min(MOST, Math.max(1, wanted));
    const point = (pan.scrollLeft + at * pan.clientWidth) / (pan.clientWidth * zoom);
    zoom = next;
    plot.setAttribute("width", `${100 * zoom}%`);
    chart.classList.toggle("zoomed", zoom >= 3);
    chart.dataset.zoom = String(zoom);
    pan.scrollLeft = point * pan.clientWidth * zoom - at * pan.clientWidth;
    name();
  };

  const tools = document.createElement("div");
  tools.className = "tools";
  for (const [text, label, act] of [
    ["−", "Zoom out", () => scale(zoom / 2)],
    ["+", "Zoom in", () => scale(zoom * 2)],
    ["fit", "Show all", () => scale(1)],
  ]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    tools.append(button);
  }
  chart.before(tools);

  pan.tabIndex = 0;
  pan.setAttribute("role", "group");
  pan.setAttribute("aria-label", "Schedule: + and - zoom, 0 shows all, arrow keys move");
  pan.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowLeft: -0.2, ArrowRight: 0.2 }[event.key];
    const factor = { "+": 2, "=": 2, "-": 0.5, 0: 1 / zoom }[event.key];
    if (step !== undefined) pan.scrollLeft += step * pan.clientWidth;
    else if (factor !== undefined) scale(zoom * factor);
    else return;
    event.preventDefault();
  });
  pan.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const box = pan.getBoundingClientRect();
      scale(zoom * 2 ** (-event.deltaY / 200), (event.clientX - box.left) / box.width);
    },
    { passive: false },
  );
  let held = null;
  pan.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0) held = { x: event.clientX, left: pan.scrollLeft };
  });
  window.addEventListener("pointermove", (event) => {
    if (held) pan.scrollLeft = held.left + held.x - event.clientX;
  });
  window.addEventListener("pointerup", () => (held = null));
};
for (const chart of document.querySelectorAll(".gantt")) zoomable(chart);

// A link to one schedule opens it.
const openLinked = () => {
  const linked = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!(linked instanceof HTMLDetailsElement)) return;
  linked.open = true;
  linked.scrollIntoView();
};
window.addEventListener("hashchange", openLinked);
openLinked();
