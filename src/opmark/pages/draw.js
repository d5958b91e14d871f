// Draw schedules that a page names but does not hold: a `details` with data-script, data-instance and data-entry gets
// its chart when it is opened first. The script of that name calls `drawSchedules` with gzip in base64.
"use strict";
const SVG = "http://www.w3.org/2000/svg";
const LANE = 22, LABEL = 18, AXIS = 22, CURVE = 30, COLOURS = 8;

const shortNs = (ns) => {
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (ns >= 0.9995 * size) return `${ns < 999.5 * size ? (ns / size).toPrecision(3) : Math.round(ns / size)} ${unit}`;
  }
  return ns ? `${ns.toPrecision(3)} ns` : "0 ns";
};

const made = (parent, name, attributes, text) => {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
};

const steps = (end, about) => {
  const raw = end / about, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * size).find((one) => one >= raw);
  const found = [];
  for (let at = 0; at <= 0.94 * end; at += step) found.push(at);
  return found;
};

// Levels of overlapping bars: a bar takes the first level that is free.
const stacked = (bars) => {
  const free = [];
  for (const bar of bars) {
    let level = free.findIndex((time) => time <= bar.start);
    if (level < 0) level = free.push(0) - 1;
    free[level] = bar.start + bar.length;
    bar.level = level;
  }
  return Math.max(free.length, 1);
};

const drawn = (shared, schedule, title) => {
  const end = Math.max(1, schedule.ns / schedule.step);
  const percent = (time) => `${Number(((100 * time) / end).toFixed(4))}%`;
  const name = (label) => shared.labels[label].trimEnd();
  const spent = new Map();
  const lanes = schedule.lanes.map((lane, number) => {
    const row = schedule.bars[number], bars = [];
    let at = 0, busy = 0;
    for (let k = 0; k < row.length; k += 3) {
      const bar = { start: at + row[k], length: row[k + 1], label: row[k + 2], kind: shared.kindOf[row[k + 2]] };
      at = bar.start + bar.length;
      busy += bar.length;
      spent.set(bar.kind, (spent.get(bar.kind) ?? 0) + bar.length);
      bars.push(bar);
    }
    return { lane, bars, busy: busy / end };
  });
  const isTransfer = (kind) => shared.kinds[kind] === "transfer";
  const ranked = [...spent.keys()].filter((kind) => !isTransfer(kind)).sort(
    (a, b) => spent.get(b) - spent.get(a) || (shared.kinds[a] < shared.kinds[b] ? -1 : 1),
  );
  const style = (kind) => (isTransfer(kind) ? "transfer" : `c${Math.min(COLOURS, ranked.indexOf(kind))}`);

  const pitch = LABEL + CURVE + 4;
  const bottom = lanes.length * (LABEL + LANE + 6) + schedule.memory.length * pitch;
  const chart = document.createElement("div");
  chart.className = "gantt";
  const pan = document.createElement("div");
  pan.className = "pan";
  chart.append(pan);
  const size = { width: "100%", height: bottom + AXIS };
  const plot = made(pan, "svg", { class: "plot", role: "img", ...size });
  const captions = made(chart, "svg", { class: "captions", "aria-hidden": "true", ...size });
  made(plot, "title", {}, title);
  for (const [about, look] of [[5, "coarse"], [40, "fine"]]) {
    for (const time of steps(schedule.ns, about)) {
      const x = percent(time / schedule.step);
      if (look === "coarse") made(plot, "line", { class: "grid", x1: x, x2: x, y1: 0, y2: bottom });
      const anchor = time ? "middle" : "start";
      made(plot, "text", { class: `axis ${look}`, x, y: bottom + 15, "text-anchor": anchor }, time ? shortNs(time) : "0");
    }
  }
  const caption = (top, left, right) => {
    made(captions, "text", { x: 0, y: top + 13 }, left);
    made(captions, "text", { class: "axis", x: "100%", y: top + 13, "text-anchor": "end" }, right);
  };
  let top = 0;
  for (const one of lanes) {
    one.middle = top + LABEL + LANE / 2;
    caption(top, one.lane, one.bars.length ? `${Math.round(100 * one.busy)} % busy` : "idle");
    made(plot, "rect", { class: "lane", x: 0, width: "100%", y: top + LABEL, height: LANE });
    const height = Math.floor(LANE / stacked(one.bars));
    for (const bar of one.bars) {
      const wide = (100 * bar.length) / end, kind = shared.kinds[bar.kind];
      const place = { x: percent(bar.start), width: percent(bar.length), y: top + LABEL + bar.level * height, height };
      const look = `${style(bar.kind)}${wide > 0.4 ? " edge" : ""}`;
      const texts = height < LANE ? [] : isTransfer(bar.kind) ? [name(bar.label)] : [name(bar.label), kind];
      const text = texts.find((word) => wide >= 2.6 + 2.1 * word.length);
      const what = isTransfer(bar.kind) || kind === name(bar.label) ? name(bar.label) : `${name(bar.label)} (${kind})`;
      const tip = `${what}: ${shortNs(bar.length * schedule.step)} at ${shortNs(bar.start * schedule.step)}`;
      if (text === undefined) {
        made(made(plot, "rect", { class: look, ...place }), "title", {}, tip);
      } else {
        const box = made(plot, "svg", place);
        made(made(box, "rect", { class: look, width: "100%", height: "100%" }), "title", {}, tip);
        made(box, "text", { class: "name", x: 4, y: 15 }, text);
      }
    }
    top += LABEL + LANE + 6;
  }
  for (const [lane, peak, levels] of schedule.memory) {
    const what = `${schedule.lanes[lane]}: memory`;
    caption(top, what, peak);
    const box = made(plot, "svg", {
      class: "memory", y: top + LABEL, width: "100%", height: CURVE, viewBox: "0 0 120 50", preserveAspectRatio: "none",
    });
    made(box, "title", {}, `${what}, ${peak}`);
    made(box, "rect", { class: "lane", width: "100%", height: "100%" });
    let path = "M0 50";
    for (let k = 0; k < levels.length; k += 2) path += `H${levels[k]}V${(50 - 0.94 * levels[k + 1]).toFixed(1)}`;
    made(box, "path", { d: `${path}H120V50z` });
    top += pitch;
  }
  for (const [source, destination, start, finish, label] of schedule.arrows) {
    const group = made(plot, "g", { class: "arrow" });
    const y1 = lanes[source].middle, y2 = lanes[destination].middle, x2 = percent(finish);
    made(group, "line", { x1: percent(start), y1, x2, y2 });
    made(group, "circle", { cx: x2, cy: y2, r: 2.5 });
    const took = shortNs((finish - start) * schedule.step);
    made(group, "title", {}, `${name(label)}: ${lanes[source].lane} → ${lanes[destination].lane}, ${took}`);
  }
  const legend = document.createElement("ul");
  legend.className = "legend";
  const total = ranked.reduce((sum, kind) => sum + spent.get(kind), 0) || 1;
  const keys = ranked.slice(0, COLOURS).map((kind) => [style(kind), shared.kinds[kind], spent.get(kind) / total]);
  const rest = ranked.slice(COLOURS).reduce((sum, kind) => sum + spent.get(kind), 0) / total;
  if (rest) keys.push([`c${COLOURS}`, `${ranked.length - COLOURS} more`, rest]);
  if ([...spent.keys()].some(isTransfer)) keys.push(["transfer", "transfer", undefined]);
  for (const [look, label, share] of keys) {
    const item = document.createElement("li");
    made(made(item, "svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }), "rect", { class: look, width: 10, height: 10 });
    item.append(label);
    if (share !== undefined) {
      const quiet = document.createElement("span");
      quiet.className = "quiet";
      quiet.textContent = `${Math.round(100 * share)} %`;
      item.append(" ", quiet);
    }
    legend.append(item);
  }
  return [chart, legend];
};

const waiting = new Map();
async function drawSchedules(instance, packed) {
  const bytes = Uint8Array.from(atob(packed), (one) => one.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const [shared, schedules] = await new Response(plain).json();
  for (const part of waiting.get(instance) ?? []) {
    const figure = part.querySelector("figure"), { entry } = part.dataset;
    const [chart, legend] = drawn(shared, schedules[shared.entries[entry]], `${entry} on ${instance}`);
    figure.replaceChildren(chart, legend);
    zoomable(chart);
  }
  waiting.delete(instance);
}
for (const part of document.querySelectorAll("details[data-script]")) {
  const open = () => {
    if (!part.open || part.dataset.asked) return;
    part.dataset.asked = "yes";
    const { instance, script } = part.dataset;
    const known = waiting.get(instance);
    waiting.set(instance, [...(known ?? []), part]);
    if (known) return;
    const element = document.createElement("script");
    element.src = script;
    element.onerror = () => (part.querySelector("figure").textContent = `${script} is missing.`);
    document.body.append(element);
  };
  part.addEventListener("toggle", open);
  open();
}
