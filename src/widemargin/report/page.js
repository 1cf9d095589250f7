// Light or dark: as the system says until the button says otherwise; kept for the next visit where that is allowed.
(() => {
  "use strict";
  const root = document.documentElement, button = document.getElementById("theme"), dark = matchMedia("(prefers-color-scheme: dark)");
  const kept = (...pair) => {
    try {
      return pair.length ? localStorage.setItem("widemargin-theme", pair[0]) : localStorage.getItem("widemargin-theme");
    } catch {
      return null; // storage may be forbidden; the choice then lasts as long as the page
    }
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => (button.textContent = isDark() ? "Light" : "Dark");
  if (["light", "dark"].includes(kept())) root.dataset.theme = kept();
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    kept(root.dataset.theme);
    label();
  });
  dark.addEventListener("change", label);
  label();
})();
