/** Something that is done soon after it was asked for, but not more often than this; what was asked for last is never forgotten. */
export function throttle(milliseconds: number, callback: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let done = -Infinity;
  return {
    schedule() {
      const wait = Math.max(0, done + milliseconds - Date.now());
      timer ??= setTimeout(() => {
        timer = undefined;
        done = Date.now();
        callback();
      }, wait);
    },
    cancel() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
