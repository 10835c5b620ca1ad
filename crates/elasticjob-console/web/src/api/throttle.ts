/** Calls back soon after `schedule`, but at most once per interval. The last `schedule` is always followed by a call. */
export function throttle(milliseconds: number, callback: () => void) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lastCall = -Infinity;
  return {
    schedule() {
      const wait = Math.max(0, lastCall + milliseconds - Date.now());
      timer ??= setTimeout(() => {
        timer = undefined;
        lastCall = Date.now();
        callback();
      }, wait);
    },
    cancel() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
