/** Something that is done soon after it was asked for, but not more often than this; what was asked for last is never forgotten. */
export function paced(milliseconds: number, act: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let done = -Infinity;
  return {
    soon() {
      const wait = Math.max(0, done + milliseconds - Date.now());
      timer ??= setTimeout(() => {
        timer = undefined;
        done = Date.now();
        act();
      }, wait);
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
