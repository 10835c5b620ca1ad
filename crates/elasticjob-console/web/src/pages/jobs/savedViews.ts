export interface SavedView {
  name: string;
  /** What stands in the URL. */
  params: string;
}

const key = (registry: string) => `elasticjob-views ${registry}`;

/** Searches that somebody gave a name; each browser keeps its own. */
export function loadViews(registry: string): SavedView[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key(registry)) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isSavedView) : [];
  } catch {
    return [];
  }
}

export function saveViews(registry: string, views: SavedView[]) {
  try {
    localStorage.setItem(key(registry), JSON.stringify(views));
  } catch {
    // Then they last as long as the page.
  }
}

/** With this one put in; one of the same name makes room. */
export const putView = (views: SavedView[], view: SavedView): SavedView[] =>
  [...views.filter((each) => each.name !== view.name), view].sort((a, b) =>
    a.name.localeCompare(b.name),
  );

const isSavedView = (stored: unknown): stored is SavedView =>
  typeof stored === "object" &&
  stored !== null &&
  typeof (stored as SavedView).name === "string" &&
  typeof (stored as SavedView).params === "string";
