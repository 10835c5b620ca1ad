const KEY = "elasticjob-registry";

/** The last open registry, stored per browser. */
export const lastRegistry = {
  get: (): string | null => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  },
  set: (name: string) => {
    try {
      localStorage.setItem(KEY, name);
    } catch {
      // Storage may be blocked; then the first registry is opened.
    }
  },
};
