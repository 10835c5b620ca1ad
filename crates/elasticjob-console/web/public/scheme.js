// Before the first paint, so that dark does not begin with a white flash.
(() => {
  var chosen = null;
  try {
    chosen = localStorage.getItem("elasticjob-scheme");
  } catch {
    // Storage may be shut off.
  }
  var isDark =
    chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", isDark ? "dark" : "light");
})();
