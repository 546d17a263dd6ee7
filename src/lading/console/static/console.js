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

  // The open tab stands in the entry of the history, so that who comes back finds it.
  const keepTab = (name) => history.replaceState({ ...history.state, ladingTab: name }, "");
  const tellTab = () => history.state?.ladingTab && emitEvent("lading_tab", history.state.ladingTab);

  window.lading = {
    keepTab,
    tellTab,
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

  setInterval(() => {
    if (!document.hidden) for (const listener of listeners) listener(now());
  }, 1000);
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
    }
  }).observe(document, { childList: true, subtree: true });
})();
