/** Calls back soon after `schedule`, but at most once per interval. The last `schedule` is always followed by a call. */
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
