// What is wrong with a page, by kind. Lists of places; empty lists are good news.
() => {
  const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const place = (element) => `<${element.tagName.toLowerCase()} class="${element.className}"> ${element.textContent.trim().slice(0, 60)}`;
  const isSpoken = (element) => element.closest(".ld-sr, .ld-skip, #popup, [aria-hidden=true], .cm-announced, thead");
  const wrong = { scrolls: [], outside: [], cut: [], faint: [], overlaps: [], unnamed: [], broken: [] };

  if (document.documentElement.scrollWidth > window.innerWidth) wrong.scrolls.push(document.documentElement.scrollWidth);
  // Nobody looks for a button behind the edge of a table of many columns: it becomes cards before that.
  for (const box of document.querySelectorAll(".ld-table-box:has(.ld-early)")) {
    if (box.scrollWidth > box.clientWidth + 1) wrong.scrolls.push(`a table: ${box.scrollWidth} in ${box.clientWidth}`);
  }

  // What a dialog covers is not looked at.
  const root = document.querySelector(".q-dialog .ld-dialog") || document.body;
  const texts = [];
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode;
    const element = node.parentElement;
    if (!node.textContent.trim() || ["SCRIPT", "STYLE", "TEMPLATE"].includes(element.tagName) || !shown(element)) continue;
    if (element.matches("details:not([open])")) continue;
    if (isSpoken(element) && !(element.closest("thead") && getComputedStyle(element.closest("thead")).position !== "absolute")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (box.width > 1 && box.height > 1) texts.push({ node, element, box });
  }

  // Where text is clipped by what it stands in, or stands where nobody can scroll to.
  for (const { element, box } of texts) {
    let clips = false;
    for (let up = element; up && up !== document.documentElement; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (["auto", "scroll"].includes(style.overflowX) && ["auto", "scroll"].includes(style.overflowY)) { clips = true; break; }
      const edge = up.getBoundingClientRect();
      const wide = style.overflowX !== "visible", high = style.overflowY !== "visible";
      if ((wide && style.overflowX !== "auto" && (box.right > edge.right + 2 || box.left < edge.left - 2)) ||
          (high && style.overflowY !== "auto" && (box.bottom > edge.bottom + 3 || box.top < edge.top - 3))) {
        wrong.cut.push(place(element));
        clips = true;
        break;
      }
      if (style.overflowX === "auto") { clips = true; break; }
    }
    if (!clips && box.right > window.innerWidth + 1) wrong.outside.push(place(element));
  }

  // Contrast of letters and what is behind them.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parsed = new Map();
  const parse = (colour) => {
    if (!parsed.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      parsed.set(colour, [r, g, b, a / 255]);
    }
    return parsed.get(colour);
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let up = element; up; up = up.parentElement) {
      const ground = parse(getComputedStyle(up).backgroundColor);
      if (ground[3]) layers.push(ground);
      if (ground[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const isOff = (element) => element.closest("[disabled], .disabled, [aria-disabled=true]");
  const seen = new Set();
  for (const { element } of texts) {
    if (seen.has(element) || isOff(element)) continue;
    seen.add(element);
    const ground = behind(element);
    const ink = over(parse(getComputedStyle(element).color), ground);
    const [high, low] = [light(ink), light(ground)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) wrong.faint.push(`${ratio.toFixed(2)} ${place(element)}`);
  }

  // Letters on letters.
  const flat = texts.filter(({ element }) => !element.closest(".cm-editor, pre, .ld-chart, .ld-lost, .q-notification, .ld-menu-list"));
  for (let one = 0; one < flat.length; one++) {
    for (let other = one + 1; other < flat.length; other++) {
      const a = flat[one].box, b = flat[other].box;
      if (flat[one].node === flat[other].node) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 5) wrong.overlaps.push(`${place(flat[one].element)} | ${place(flat[other].element)}`);
    }
  }

  for (const element of root.querySelectorAll("button, a[href], input, select, textarea, [role=button], [role=tab], [role=checkbox], [role=switch], [role=combobox]")) {
    if (!shown(element) || isSpoken(element)) continue;
    const by = (element.getAttribute("aria-labelledby") || "").split(" ").map((id) => document.getElementById(id)?.textContent || "").join("");
    const name = element.getAttribute("aria-label") || by || element.innerText?.trim() || element.title || element.closest("label")?.innerText || element.labels?.[0]?.innerText;
    if (!name) wrong.unnamed.push(element.outerHTML.slice(0, 160));
  }
  for (const image of document.images) if (!image.complete || !image.naturalWidth) wrong.broken.push(image.src);
  if (/\bundefined\b|\bNaN\b|\[object |\bNone\b/.test(document.body.innerText)) wrong.broken.push(document.body.innerText.match(/.{0,40}(\bundefined\b|\bNaN\b|\[object |\bNone\b).{0,40}/)[0]);
  return wrong;
}
