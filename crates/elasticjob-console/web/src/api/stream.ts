/** How long a line that was refused is left alone. */
const AGAIN = 3_000;

interface Heard {
  /** By the name of the event: what it says. */
  on: Record<string, (data: unknown) => void>;
  /** It begins, perhaps anew: there is no replay. */
  opened?: () => void;
  /** It is interrupted, and tried again. */
  lost?: () => void;
}

/** Listens to events of the server's until what it returns is called. */
export function listen(path: string, { on, opened, lost }: Heard): () => void {
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const begin = () => {
    source = new EventSource(`/api/v1${path}`);
    source.onopen = () => opened?.();
    for (const [name, hear] of Object.entries(on)) {
      source.addEventListener(name, (event) => hear(JSON.parse((event as MessageEvent).data)));
    }
    source.onerror = () => {
      lost?.();
      // A browser tries again by itself, but not after an answer that was no stream.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(begin, AGAIN);
    };
  };
  begin();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}
