// The colour scheme: the system's, or the one the user chose. It is loaded first, so that no other colours are shown
// meanwhile.

{
  const KEY = "theme";
  const THEMES = ["system", "light", "dark"];
  const chosen = () => {
    const kept = localStorage.getItem(KEY);
    return THEMES.includes(kept) ? kept : "system";
  };
  const apply = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  apply(chosen());
  /** The chosen theme, and a function that chooses the next one and returns it. */
  globalThis.theme = {
    chosen,
    next() {
      const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
      localStorage.setItem(KEY, next);
      apply(next);
      dispatchEvent(new Event("themechange"));
      return next;
    },
  };
}
