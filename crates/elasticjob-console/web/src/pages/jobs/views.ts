export interface View {
  name: string;
  /** What stands in the URL. */
  params: string;
}

const key = (registry: string) => `elasticjob-views ${registry}`;

/** Searches that somebody gave a name; each browser keeps its own. */
export function savedViews(registry: string): View[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key(registry)) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isView) : [];
  } catch {
    return [];
  }
}

export function saveViews(registry: string, views: View[]) {
  try {
    localStorage.setItem(key(registry), JSON.stringify(views));
  } catch {
    // Then they last as long as the page.
  }
}

/** With this one put in; one of the same name makes room. */
export const withView = (views: View[], view: View): View[] =>
  [...views.filter((each) => each.name !== view.name), view].sort((a, b) =>
    a.name.localeCompare(b.name),
  );

const isView = (kept: unknown): kept is View =>
  typeof kept === "object" &&
  kept !== null &&
  typeof (kept as View).name === "string" &&
  typeof (kept as View).params === "string";
