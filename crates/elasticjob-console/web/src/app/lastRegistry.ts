const KEY = "elasticjob-registry";

/** Where one was last. It is each browser's own: nobody is switched by somebody else. */
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
      // Then the first one is where it begins.
    }
  },
};
