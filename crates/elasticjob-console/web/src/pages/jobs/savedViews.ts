export interface SavedView {
  name: string;
  /** Query string of the page. */
  params: string;
}

const key = (registry: string) => `elasticjob-views ${registry}`;

/** Named searches, stored per browser. */
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
    // Storage may be blocked; then the views last until the page is closed.
  }
}

/** Adds a view or replaces the one with the same name. */
export const putView = (views: SavedView[], view: SavedView): SavedView[] =>
  [...views.filter((each) => each.name !== view.name), view].sort((a, b) =>
    a.name.localeCompare(b.name),
  );

const isSavedView = (stored: unknown): stored is SavedView =>
  typeof stored === "object" &&
  stored !== null &&
  typeof (stored as SavedView).name === "string" &&
  typeof (stored as SavedView).params === "string";
