// Points at what is drawn: mark k of a figure belongs to row k of its table.
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg", REACH = 60;

  const boxesOf = (svg) => [...svg.querySelectorAll(".m")].flatMap((element, part) => {
    if (element.tagName === "path")
      return [...element.getAttribute("d").matchAll(/[ML]([\d.-]+) ([\d.-]+)/g)].map(([, x, y]) => ({x: +x, y: +y, width: 0, height: 0, part}));
    const {x, y, width, height} = element.getBBox();
    return [{x, y, width, height, part}];
  });

  const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const beyond = (at, start, length) => Math.max(start - at, 0, at - start - length);

  function nearest(boxes, x, y, first) {
    let best = -1, least = Infinity;
    boxes.forEach((box, k) => {
      const dx = beyond(x, box.x, box.width), dy = beyond(y, box.y, box.height);
      const far = first === "x" ? dx + dy / 1e3 : first === "y" ? dy + dx / 1e3 : Math.hypot(dx, dy);
      if (far < least) [best, least] = [k, far];
    });
    return least < REACH ? best : -1;
  }

  function prepare(svg) {
    const root = svg.closest(".wm"), body = svg.closest("figure").querySelector("table");
    const heads = [...body.tHead.rows[0].cells].map((cell) => cell.textContent), rows = body.tBodies[0].rows;
    const tip = the(root, "tip"), live = the(root, "unseen");
    live.setAttribute("aria-live", "polite");
    tip.setAttribute("aria-hidden", "true");
    const title = svg.querySelector("title");  // a browser would show it over the tip
    svg.setAttribute("aria-label", title.textContent);
    svg.setAttribute("aria-describedby", svg.querySelector("desc").id);
    svg.removeAttribute("aria-labelledby");
    title.remove();
    const halo = document.createElementNS(SVG, "rect");
    halo.setAttribute("class", "halo");
    halo.setAttribute("visibility", "hidden");
    svg.append(halo);
    const columns = +svg.dataset.columns || 0;
    let boxes = null, now = -1;
    const marks = () => boxes ??= boxesOf(svg);

    function hide() {
      tip.classList.remove("on");
      halo.setAttribute("visibility", "hidden");
    }

    function show(k) {
      if (k < 0) return hide();
      now = k;
      const box = marks()[k], round = box.width ? 2 : 6;
      const frame = {x: box.x - round, y: box.y - round, width: box.width + 2 * round, height: box.height + 2 * round, rx: round};
      for (const name in frame) halo.setAttribute(name, frame[name]);
      halo.setAttribute("visibility", "visible");
      const cells = [...rows[k].cells].map((cell) => cell.textContent.trim());
      tip.replaceChildren(...cells.map((text, j) => {
        const line = document.createElement("div"), name = document.createElement("b");
        name.textContent = heads[j];
        line.append(name, text);
        return line;
      }));
      live.textContent = cells.map((text, j) => `${heads[j]} ${text}`).join(", ");
      place(box);
      tip.classList.add("on");
    }

    function place(box) {
      const [x, y] = middle(box), home = root.getBoundingClientRect();
      const spot = new DOMPoint(x, box.y).matrixTransform(svg.getScreenCTM());
      const wide = document.documentElement.clientWidth - tip.offsetWidth - 6;
      const left = Math.max(Math.min(spot.x - tip.offsetWidth / 2, wide), 6);
      let top = spot.y - tip.offsetHeight - 12;
      if (top < 4) top = spot.y + 2 * (y - box.y) * svg.getScreenCTM().d + 14;
      tip.style.left = `${left - home.left}px`;
      tip.style.top = `${top - home.top}px`;
    }

    function point(event) {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      show(nearest(marks(), at.x, at.y, svg.dataset.nearest));
    }

    function vertical(sign) {
      if (columns) return now + sign * columns;
      const part = marks()[now].part + sign, [x] = middle(marks()[now]);
      const others = marks().map((box, k) => [Math.abs(middle(box)[0] - x), k]).filter(([, k]) => marks()[k].part === part);
      return others.length ? others.reduce((a, b) => (b[0] < a[0] ? b : a))[1] : now;
    }

    const steps = {
      ArrowRight: () => now + 1, ArrowLeft: () => now - 1, ArrowDown: () => vertical(1), ArrowUp: () => vertical(-1),
      Home: () => 0, End: () => marks().length - 1, PageDown: () => now + 10, PageUp: () => now - 10,
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });  // a finger leaves at once
    svg.addEventListener("pointercancel", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) show(Math.max(now, 0)); });
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const to = now < 0 ? 0 : steps[event.key](), last = marks().length - 1;
      show(columns && (to < 0 || to > last) ? now : Math.min(Math.max(to, 0), last));
    });
  }

  function the(root, name) {
    let element = root.querySelector(`:scope > .${name}`);
    if (!element) {
      element = document.createElement("div");
      element.className = name;
      root.append(element);
    }
    return element;
  }

  function sortable(table) {
    const value = (row, k) => {
      const text = row.cells[k].textContent.replace(/,/g, "").replace("−", "-"), number = parseFloat(text);
      return isNaN(number) ? text : number;
    };
    [...table.tHead.rows[0].cells].forEach((head, k) => head.addEventListener("click", () => {
      const sign = head.ariaSort === "descending" ? 1 : -1;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const order = (a, b) => (typeof a === typeof b ? (a > b) - (a < b) : typeof a === "number" ? -1 : 1);
      const rows = [...table.tBodies[0].rows].sort((a, b) => sign * order(value(a, k), value(b, k)));
      table.tBodies[0].append(...rows);
    }));
  }

  document.querySelectorAll(".wm:not([data-ready])").forEach((root) => {
    root.dataset.ready = "";
    root.querySelectorAll("svg.plot").forEach(prepare);
    root.querySelectorAll("table.sortable").forEach(sortable);
  });
})();
