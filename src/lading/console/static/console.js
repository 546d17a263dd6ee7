// What all pages share in the browser: the theme, the time, whether anybody looks.
(() => {
  const THEME = "lading-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = new Set();
  const skew = Number(document.currentScript.dataset.now) - Date.now();

  const wish = () => {
    try {
      return localStorage.getItem(THEME) || "auto";
    } catch {
      return "auto";
    }
  };
  const isDark = () => wish() === "dark" || (wish() === "auto" && system.matches);
  const now = () => Date.now() + skew;

  function applyTheme() {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    if (typeof setDark === "function" && window.Quasar) setDark(isDark());
    for (const button of document.querySelectorAll(".ld-theme")) {
      const name = wish()[0].toUpperCase() + wish().slice(1);
      button.textContent = `Theme: ${name.toLowerCase()}`;
    }
    window.dispatchEvent(new CustomEvent("lading-theme", { detail: { dark: isDark() } }));
  }

  function nextTheme() {
    const order = ["auto", "light", "dark"];
    const next = order[(order.indexOf(wish()) + 1) % order.length];
    try {
      localStorage.setItem(THEME, next);
    } catch {
      // A browser that keeps nothing follows the system.
    }
    applyTheme();
  }

  function ago(at, from) {
    const seconds = Math.round((from - at) / 1000);
    if (seconds < 0) return `in ${span(-seconds)}`;
    return seconds < 2 ? "now" : `${span(seconds)} ago`;
  }

  function span(seconds) {
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
    return `${Math.floor(seconds / 86400)} d`;
  }

  const exact = (at) =>
    new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) +
    " " + (new Date(at).toLocaleTimeString("en-GB", { timeZoneName: "short" }).split(" ").pop() || "");
  const clock = (at) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

  // A button that took the place of another takes its focus, unless the focus is elsewhere by now.
  function focus(id, tries = 20) {
    const wanted = getHtmlElement(id);
    const has = document.activeElement;
    if (has && has !== document.body && has.offsetParent) return;
    if (wanted && wanted.offsetParent) wanted.focus();
    else if (tries) setTimeout(() => focus(id, tries - 1), 50);
  }

  // The text of a job that is being written; the service gives only texts without secrets.
  const DRAFT = "lading-draft";
  function draft() {
    try {
      return sessionStorage.getItem(DRAFT) || "";
    } catch {
      return "";
    }
  }
  let sealed = false;
  function keepDraft(text) {
    sealed = !text;
    try {
      if (text) sessionStorage.setItem(DRAFT, text);
      else sessionStorage.removeItem(DRAFT);
    } catch {
      // A browser that keeps nothing loses the text.
    }
  }

  // What was typed while the service did not answer: kept unless a word in it could belong to a secret.
  const SECRETS = /key|secret|token|passw|passphrase|pwd|jaas|oauthbearer|userinfo|connectionstring|credential|identified|user/;
  function keepUnsent(text) {
    const isPlain = !SECRETS.test(text.toLowerCase().replace(/[^a-z0-9]/g, "")) && !/:\/\/[^\s\/]*:[^\s\/]*@/.test(text);
    if (!sealed && text && text.length < 200000 && isPlain) keepDraft(text);
  }

  // What is chosen on a page stands in its address: who comes back, or is sent it, finds the same.
  function keepQuery(given) {
    const url = new URL(location.href);
    for (const [name, value] of Object.entries(given)) {
      if (value) url.searchParams.set(name, value);
      else url.searchParams.delete(name);
    }
    history.replaceState(history.state, "", url);
  }

  // What can be written next: the service is asked, and answers with `completed`.
  const asking = new Map();
  function completeIn(editor, { EditorState, StateEffect }) {
    async function source(context) {
      const [id, doc] = [crypto.getRandomValues(new Uint32Array(1))[0], context.state.doc];
      const found = await new Promise((answer) => {
        asking.set(id, answer);
        setTimeout(() => answer(null), 30000);
        context.addEventListener?.("abort", () => answer(null));
        // A statement is shorter than this; a text need not be.
        const before = doc.sliceString(Math.max(0, context.pos - 20000), context.pos);
        const after = doc.sliceString(context.pos, Math.min(doc.length, context.pos + 20000));
        emitEvent("lading_complete", { id, before, after, asked: context.explicit });
      });
      asking.delete(id);
      if (!found?.options.length || context.aborted) return null;
      return { from: context.pos - found.typed.length, options: found.options, filter: false };
    }
    editor.dispatch({ effects: StateEffect.appendConfig.of(EditorState.languageData.of(() => [{ autocomplete: source }])) });
  }

  // A lost connection: the page is dimmed and says since when it tells nothing new.
  function watchConnection() {
    const popup = document.getElementById("popup");
    const stamp = document.querySelector(".ld-lost");
    if (!popup || !stamp) return;
    // What was heard last is what the page knows: that a network is gone is noticed later.
    let heard = now();
    const listen = setInterval(() => {
      if (!window.socket) return;
      clearInterval(listen);
      window.socket.onAny(() => (heard = now()));
      window.socket.on("connect", () => (heard = now()));
      window.socket.io.on("ping", () => (heard = now()));
    }, 200);
    new MutationObserver(() => {
      const root = document.documentElement;
      if (popup.ariaHidden !== "false") {
        delete root.dataset.lost;
        stamp.textContent = "";
      } else if (!root.dataset.lost) {
        root.dataset.lost = "yes";
        const at = new Date(heard).toLocaleTimeString("en-GB");
        stamp.textContent = `Connection lost. This page shows what was known at ${at}; it goes on when the service answers.`;
      }
    }).observe(popup, { attributes: true });
  }

  window.lading = {
    completeIn,
    completed: (found) => asking.get(found.id)?.(found),
    keepQuery,
    keepUnsent,
    focus,
    draft,
    keepDraft,
    now,
    ago,
    exact,
    clock,
    isDark,
    nextTheme,
    onTick(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };

  // Seconds until something happens by itself.
  function countDown() {
    for (const element of document.querySelectorAll(".ld-until")) {
      const at = Number(element.dataset.at);
      const seconds = Math.ceil((at - now()) / 1000);
      element.textContent = !at ? "" : seconds > 0 ? `in ${span(seconds)}.` : "now.";
    }
  }

  setInterval(() => {
    if (!document.hidden) for (const listener of listeners) listener(now());
    if (!document.hidden) countDown();
  }, 1000);
  // The menu closes with Escape, and when somebody goes elsewhere.
  function closeMenu(event) {
    for (const menu of document.querySelectorAll(".ld-menu[open]")) {
      if (event.type === "keydown" ? event.key !== "Escape" : menu.contains(event.target)) continue;
      menu.open = false;
      if (event.type === "keydown") menu.querySelector("summary").focus();
    }
  }
  for (const kind of ["keydown", "click", "focusin"]) document.addEventListener(kind, closeMenu);
  system.addEventListener("change", applyTheme);
  window.addEventListener("storage", (event) => event.key === THEME && applyTheme());
  document.addEventListener("visibilitychange", () => emitEvent("lading_seen", !document.hidden));
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  new MutationObserver((_, observer) => {
    if (document.querySelector(".ld-theme")) {
      observer.disconnect();
      // The layout around a page is no landmark: the page has its own.
      document.querySelector("main.q-page")?.setAttribute("role", "presentation");
      applyTheme();
      watchConnection();
    }
  }).observe(document, { childList: true, subtree: true });
})();
