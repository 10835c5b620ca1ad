// Runs before the first paint, so that the dark scheme does not start with a white flash.
(() => {
  var chosen = null;
  try {
    chosen = localStorage.getItem("elasticjob-scheme");
  } catch {
    // Storage may be blocked.
  }
  var isDark =
    chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", isDark ? "dark" : "light");
})();
