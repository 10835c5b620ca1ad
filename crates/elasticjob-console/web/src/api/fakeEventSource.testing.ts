import { vi } from "vitest";

/** An `EventSource` whose events the test emits. */
export class FakeEventSource extends EventTarget {
  static readonly CLOSED = 2;
  static all: FakeEventSource[] = [];
  readyState = 1;
  onopen?: () => void;
  onerror?: () => void;

  constructor(readonly url: string) {
    super();
    FakeEventSource.all.push(this);
  }

  static get open() {
    return FakeEventSource.all.filter((source) => source.readyState !== FakeEventSource.CLOSED);
  }

  close() {
    this.readyState = FakeEventSource.CLOSED;
  }

  emit(name: string, data: unknown) {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

/** Replaces `EventSource` and `document`; `setVisible` shows or hides the page. */
export function stubBrowser() {
  FakeEventSource.all = [];
  const page = Object.assign(new EventTarget(), { hidden: false });
  vi.stubGlobal("EventSource", FakeEventSource);
  vi.stubGlobal("document", page);
  return {
    setVisible: (isVisible: boolean) => {
      page.hidden = !isVisible;
      page.dispatchEvent(new Event("visibilitychange"));
    },
  };
}
