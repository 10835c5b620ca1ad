import { vi } from "vitest";

/** A line whose other end is the test: what the server would say, it says. */
export class Told extends EventTarget {
  static readonly CLOSED = 2;
  static all: Told[] = [];
  readyState = 1;
  onopen?: () => void;
  onerror?: () => void;

  constructor(readonly url: string) {
    super();
    Told.all.push(this);
  }

  static get open() {
    return Told.all.filter((line) => line.readyState !== Told.CLOSED);
  }

  close() {
    this.readyState = Told.CLOSED;
  }

  say(name: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

/** A page that is seen, or not, in a browser that has lines. */
export function standIn() {
  Told.all = [];
  const page = Object.assign(new EventTarget(), { hidden: false });
  vi.stubGlobal("EventSource", Told);
  vi.stubGlobal("document", page);
  return {
    see: (isSeen: boolean) => {
      page.hidden = !isSeen;
      page.dispatchEvent(new Event("visibilitychange"));
    },
  };
}
