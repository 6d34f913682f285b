// Draws the rows that task_rows.py packed: a line a thread, a bar a task.
"use strict";
(async () => {
  const told = JSON.parse(document.getElementById("task-rows").textContent);
  const box = document.getElementById("drawn"), canvas = box.querySelector("canvas"), said = box.querySelector("output");
  const [first, last] = box.querySelectorAll(".axis span"), pen = canvas.getContext("2d");
  box.hidden = false;
  if (!window.DecompressionStream) { said.textContent = "This browser is too old to draw them: it has no DecompressionStream."; return; }
  const lengths = told.lanes.flat(), n = lengths.reduce((sum, each) => sum + each, 0);
  async function column(text) {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    let at = 0;
    return Float64Array.from({ length: n }, () => {
      let value = 0, unit = 1;
      for (; bytes[at] > 127; unit *= 128) value += (bytes[at++] - 128) * unit;
      return value + bytes[at++] * unit;
    });
  }
  const [kinds, pauses, digits, lasts, zeroes, failed, weights] = await Promise.all(told.columns.map(column));

  // Times in ms from the first start, which was `from` ms after the run's. Starts are whole ones.
  const starts = new Float64Array(n), stops = new Float64Array(n), lanes = [];
  let row = 0, span = 1;
  told.lanes.forEach((ofWorker, worker) => ofWorker.forEach((length) => {
    lanes.push({ worker, from: row, to: row + length });
    for (let ended = 0, end = row + length; row < end; row++) {
      const pause = pauses[row] % 2 ? -(pauses[row] + 1) / 2 : pauses[row] / 2, us = (digits[row] * 10 + lasts[row]) * 10 ** zeroes[row];
      starts[row] = ended + pause;
      stops[row] = starts[row] + us / 1000;
      ended = starts[row] + Math.floor(us / 1000);
      span = Math.max(span, stops[row]);
    }
  }));
  const colour = (kind) => `hsl(${Math.round(kind * 137.5) % 360} 60% ${45 + 8 * (kind % 3)}%)`;
  const high = Math.max(2, Math.min(28, Math.floor(480 / lanes.length)));
  const still = document.createElement("canvas");  // what was drawn, without what is marked
  let view = [0, span], dragged = null;

  const time = (ms) => ms <= 0 ? "0 s" : ms < 1 ? `${+(ms * 1000).toPrecision(3)} µs` : ms < 1000 ? `${+ms.toPrecision(3)} ms` : `${+(ms / 1000).toPrecision(ms < 60000 ? 3 : 5)} s`;
  const after = (ms) => `+${time(ms + told.from)}`;
  const place = (ms, width) => (ms - view[0]) / (view[1] - view[0]) * width;

  function draw() {
    const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${lanes.length * high}px`;
    canvas.width = width * ratio;
    canvas.height = lanes.length * high * ratio;
    pen.scale(ratio, ratio);
    const ink = getComputedStyle(canvas).color;
    lanes.forEach((lane, number) => {
      const top = number * high, gap = high > 5 ? 1 : 0;
      for (let i = lane.from, done = -1; i < lane.to; i++) {
        if (stops[i] < view[0] || starts[i] > view[1]) continue;
        const left = Math.max(0, place(starts[i], width)), right = Math.min(width, place(stops[i], width));
        // Of many in one point of the screen the first is drawn, and those that failed.
        if (right <= done && !failed[i]) continue;
        const wide = Math.max(right - left, 1 / ratio);
        pen.fillStyle = failed[i] ? ink : colour(kinds[i]);
        pen.fillRect(left, top, wide, high - gap);
        done = left + wide;
      }
    });
    still.width = canvas.width;
    still.height = canvas.height;
    still.getContext("2d").drawImage(canvas, 0, 0);
    first.textContent = after(view[0]);
    last.textContent = after(view[1]);
  }

  function mark() {
    pen.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    pen.drawImage(still, 0, 0, canvas.clientWidth, canvas.clientHeight);
    pen.globalAlpha = 0.25;
    pen.fillStyle = getComputedStyle(canvas).color;
    pen.fillRect(Math.min(...dragged), 0, Math.abs(dragged[1] - dragged[0]), canvas.clientHeight);
    pen.globalAlpha = 1;
  }

  function look(from, to) {
    const width = Math.min(Math.max(to - from, 0.01), span), start = Math.min(Math.max(from, 0), span - width);
    view = [start, start + width];
    draw();
  }
  const zoom = (factor) => { const middle = (view[0] + view[1]) / 2, half = (view[1] - view[0]) / 2 * factor; look(middle - half, middle + half); };
  const pan = (part) => { const by = (view[1] - view[0]) * part; look(view[0] + by, view[1] + by); };
  const acts = { in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.3), right: () => pan(0.3), all: () => look(0, span) };
  const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all" };

  function tell(x, y) {
    const lane = lanes[Math.floor(y / high)], ms = view[0] + x / canvas.clientWidth * (view[1] - view[0]);
    if (!lane) return;
    let near = -1, off = (view[1] - view[0]) / canvas.clientWidth * 2;
    for (let i = lane.from; i < lane.to; i++) {
      const away = Math.max(starts[i] - ms, ms - stops[i], 0);
      if (away < off || (away === 0 && near < 0)) { near = i; off = away; }
    }
    const worker = told.workers[lane.worker];
    said.textContent = near < 0 ? worker
      : `${told.kinds[kinds[near]]}: ${time(stops[near] - starts[near])} from ${after(starts[near])} on, ${worker}${failed[near] ? ", failed" : ""}${weights[near] > 1 ? `, one of ${weights[near]}` : ""}`;
  }

  box.querySelectorAll("button").forEach((button) => button.addEventListener("click", () => acts[button.value]()));
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); acts[act](); }
  });
  canvas.addEventListener("pointerdown", (event) => { dragged = [event.offsetX, event.offsetX]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (dragged) { dragged[1] = event.offsetX; mark(); } else tell(event.offsetX, event.offsetY);
  });
  canvas.addEventListener("pointerup", () => {
    const [from, to] = dragged ? [...dragged].sort((a, b) => a - b) : [0, 0], width = canvas.clientWidth, step = (view[1] - view[0]) / width;
    dragged = null;
    if (to - from > 4) look(view[0] + from * step, view[0] + to * step); else draw();
  });
  canvas.addEventListener("pointercancel", () => { dragged = null; draw(); });

  const counts = told.kinds.map(() => 0), spent = told.kinds.map(() => 0), legend = box.querySelector(".key");
  for (let i = 0; i < n; i++) { counts[kinds[i]] += weights[i]; spent[kinds[i]] += (stops[i] - starts[i]) * weights[i]; }
  const order = told.kinds.map((_, kind) => kind).sort((a, b) => spent[b] - spent[a]);
  order.slice(0, 20).forEach((kind) => {
    const entry = legend.appendChild(document.createElement("li")), patch = entry.appendChild(document.createElement("span"));
    patch.style.background = colour(kind);
    entry.append(`${told.kinds[kind]} (${counts[kind].toLocaleString("en")}, ${time(spent[kind])})`);
  });
  if (order.length > 20) legend.appendChild(document.createElement("li")).textContent = `and ${order.length - 20} more`;
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  canvas.dataset.rows = n;
})();
