"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const circuits = data.circuits, perNode = data.per_node, nodes = data.nodes;
  let chosen = -1;

  const make = (tag, text, parent) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  const option = (select, value, text) => { make("option", text, select).value = String(value); };

  for (const phase of data.phases) {
    if (!phase.parts.length) continue;
    option($("part"), "phase " + phase.index, phase.name + ": all parts");
    if (phase.parts.length > 1) for (const part of phase.parts) option($("part"), "part " + part.index, part.name);
  }
  for (const rail of circuits.rails) option($("rail"), rail, "rail " + rail);

  // Nodes stand stage by stage, in the order of their first ranks; those without a rank come last.
  const stageOf = new Array(nodes).fill(data.stages);
  for (let gpu = 0; gpu < data.rank_of_gpu.length; gpu++) {
    const rank = data.rank_of_gpu[gpu];
    if (rank >= 0) {
      const node = Math.floor(gpu / perNode);
      stageOf[node] = Math.min(stageOf[node], data.stage_of_rank[rank]);
    }
  }
  const rows = [];
  for (let stage = 0; stage <= data.stages; stage++) {
    const here = [];
    for (let node = 0; node < nodes; node++) if (stageOf[node] === stage) here.push(node);
    if (here.length) rows.push({ stage, here });
  }

  // --- layout --------------------------------------------------------------------------------
  const most = Math.max(...rows.map((row) => row.here.length));
  const perLine = Math.min(most, 32);
  const cell = most > 16 ? 32 : 62, box = most > 16 ? 26 : 40, gap = most > 16 ? 34 : 44;
  const left = 80, top = 34;
  const place = new Array(nodes), order = [];
  let y = top;
  for (const row of rows) {
    row.y = y;
    row.here.forEach((node, at) => {
      const line = Math.floor(at / perLine);
      const across = at % perLine;  // lines run to and fro, so that neighbours stay close
      place[node] = { x: left + (line % 2 ? perLine - 1 - across : across) * cell, y: y + line * (box + 12) };
      order.push(node);
    });
    y += Math.ceil(row.here.length / perLine) * (box + 12) + gap;
  }
  const width = left + perLine * cell + 16, height = y - gap + 24;
  const position = new Map(order.map((node, at) => [node, at]));

  // --- what is shown ---------------------------------------------------------------------------
  const shown = () => {
    const [kind, number] = $("part").value.split(" "), rail = Number($("rail").value);
    const parts = new Set();
    for (const phase of data.phases) for (const part of phase.parts)
      if (kind === "phase" ? phase.index === Number(number) : part.index === Number(number)) parts.add(part.index);
    const found = [];
    for (let row = 0; row < circuits.part.length; row++)
      if (parts.has(circuits.part[row]) && circuits.rail[row] === rail) found.push(row);
    return found;
  };
  const end = (value) => {
    const gpu = Math.floor(value / data.ports), port = value % data.ports;
    return { gpu, port, node: Math.floor(gpu / perNode), local: gpu % perNode, rank: data.rank_of_gpu[gpu] };
  };

  const draw = () => {
    const canvas = $("canvas"), ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const ink = css("--ink"), quiet = css("--quiet");
    for (const row of rows) {
      pen.fillStyle = quiet;
      pen.textAlign = "left";
      pen.fillText(row.stage === data.stages ? "unused" : "stage " + row.stage, 12, row.y + box / 2);
    }
    const lines = new Map();
    for (const row of shown()) {
      const a = end(circuits.from[row]).node, b = end(circuits.to[row]).node;
      const key = Math.min(a, b) * nodes + Math.max(a, b);
      lines.set(key, (lines.get(key) || 0) + 1);
    }
    const centre = (node) => [place[node].x + box / 2, place[node].y + box / 2];
    for (const pass of [false, true]) for (const key of lines.keys()) {
      const a = Math.floor(key / nodes), b = key % nodes, mine = a === chosen || b === chosen;
      if (mine !== pass) continue;
      const [ax, ay] = centre(a), [bx, by] = centre(b);
      pen.beginPath();
      if (ay === by && Math.abs(ax - bx) > cell * 1.5) {
        const edge = ay - box / 2;  // over the nodes between
        pen.moveTo(ax, edge);
        pen.quadraticCurveTo((ax + bx) / 2, edge - Math.min(gap, 18 + Math.abs(ax - bx) / 12), bx, edge);
      } else {
        pen.moveTo(ax, ay);
        pen.lineTo(bx, by);
      }
      pen.strokeStyle = css(mine ? "--chosen" : "--circuit");
      pen.lineWidth = mine ? 3 : 1.4;
      pen.globalAlpha = chosen < 0 || mine ? 1 : 0.35;
      pen.stroke();
    }
    pen.globalAlpha = 1;
    for (const node of order) {
      const at = place[node];
      pen.fillStyle = css(node === chosen ? "--chosen" : stageOf[node] === data.stages ? "--free" : "--node");
      pen.fillRect(at.x, at.y, box, box);
      pen.strokeStyle = node === chosen ? ink : css("--line");
      pen.lineWidth = 1;
      pen.strokeRect(at.x + .5, at.y + .5, box - 1, box - 1);
      pen.fillStyle = node === chosen ? "#000000" : ink;
      pen.textAlign = "center";
      pen.font = (box >= 40 ? 13 : 11) + "px system-ui, sans-serif";
      pen.fillText(String(node), at.x + box / 2, at.y + box / 2 + 1);
    }
    const joined = lines.size;
    $("legend").textContent = shown().length.toLocaleString("en") + " circuits on rail " + $("rail").value + " join " +
      joined.toLocaleString("en") + " pairs of nodes." +
      (circuits.rails.length < data.rail_count ? " Rails beyond " + circuits.rails[circuits.rails.length - 1] + " are left out." : "");
  };

  const describe = () => {
    const box = $("details");
    box.replaceChildren();
    if (chosen < 0) return;
    make("h3", "Node " + chosen, box);
    const ranks = [];
    for (let local = 0; local < perNode; local++) {
      const rank = data.rank_of_gpu[chosen * perNode + local];
      if (rank >= 0) ranks.push(rank);
    }
    make("p", ranks.length ? "Ranks " + spans(ranks) + ", pipeline stage " + stageOf[chosen] + "." : "No rank of the job.", box);
    const mine = shown().filter((row) => end(circuits.from[row]).node === chosen || end(circuits.to[row]).node === chosen);
    if (!mine.length) { make("p", "No circuit here.", box); return; }
    const wide = make("div", undefined, box);
    wide.className = "wide";
    const table = make("table", undefined, wide), head = make("tr", undefined, make("thead", undefined, table));
    for (const name of ["part", "from", "to", "switch", "positions"]) make("th", name, head);
    const body = make("tbody", undefined, table);
    const said = (at) => "node " + at.node + " GPU " + at.local + " port " + at.port + (at.rank >= 0 ? ", rank " + at.rank : "");
    for (const row of mine.slice(0, 60)) {
      const line = make("tr", undefined, body);
      make("td", data.part_names[circuits.part[row]], line);
      make("td", said(end(circuits.from[row])), line);
      make("td", said(end(circuits.to[row])), line);
      make("td", data.switch_names[circuits.switch[row]], line);
      make("td", circuits.ingress[row] + (data.one_way ? " → " : " ↔ ") + circuits.egress[row], line);
    }
    if (mine.length > 60) make("p", (mine.length - 60).toLocaleString("en") + " more.", box);
  };
  const spans = (numbers) => {
    const found = [];
    for (const number of [...numbers].sort((a, b) => a - b)) {
      const last = found[found.length - 1];
      if (last && last[1] === number - 1) last[1] = number; else found.push([number, number]);
    }
    return found.map(([a, b]) => (a === b ? String(a) : a + ".." + b)).join(", ");
  };

  const choose = (node) => {
    chosen = node;
    $("node").value = node < 0 ? "" : String(node);
    draw();
    describe();
    if (node >= 0) {
      const frame = $("drawing"), x = place[node].x;
      if (x < frame.scrollLeft + left || x + box > frame.scrollLeft + frame.clientWidth) frame.scrollLeft = x - frame.clientWidth / 2;
    }
  };
  $("canvas").addEventListener("click", (event) => {
    const area = $("canvas").getBoundingClientRect(), x = event.clientX - area.left, y = event.clientY - area.top;
    const hit = order.find((node) => x >= place[node].x - 2 && x <= place[node].x + box + 2 && y >= place[node].y - 2 && y <= place[node].y + box + 2);
    choose(hit === undefined ? -1 : hit);
  });
  $("drawing").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: perLine, ArrowUp: -perLine }[event.key];
    if (event.key === "Escape") choose(-1);
    if (step === undefined) return;
    event.preventDefault();
    const at = chosen < 0 ? 0 : position.get(chosen) + step;
    if (at >= 0 && at < order.length) choose(order[at]);
  });
  $("node").addEventListener("change", () => {
    const node = Number($("node").value);
    choose($("node").value !== "" && Number.isInteger(node) && node >= 0 && node < nodes ? node : -1);
  });
  for (const id of ["part", "rail"]) $(id).addEventListener("change", () => { draw(); describe(); });
  for (const row of document.querySelectorAll("[data-phase]")) {
    row.addEventListener("click", (event) => {
      event.preventDefault();
      $("part").value = "phase " + row.dataset.phase;
      draw(); describe();
      $("fabric").scrollIntoView();
    });
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  if (circuits.part.length) draw(); else $("hint").textContent = "The job needs no circuit.";
})();
