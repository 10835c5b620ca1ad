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

interface Line {
  open: () => void;
  close: () => void;
}

/**
 * The lines of this page. A browser has six connections to a host, for all of its tabs together: with one held by each
 * tab, the seventh would get no answer at all. So a page that nobody sees has no line, and one that is seen has one: the
 * one that was begun last.
 */
const lines: Line[] = [];

function settle() {
  const wanted = document.hidden ? undefined : lines.at(-1);
  for (const line of lines) if (line !== wanted) line.close();
  wanted?.open();
}

/** Listens to events of the server's until what it returns is called. */
export function listen(path: string, heard: Heard): () => void {
  const line = lineTo(path, heard);
  if (lines.length === 0) document.addEventListener("visibilitychange", settle);
  lines.push(line);
  settle();
  return () => {
    const place = lines.indexOf(line);
    if (place < 0) return;
    line.close();
    lines.splice(place, 1);
    if (lines.length === 0) document.removeEventListener("visibilitychange", settle);
    settle();
  };
}

function lineTo(path: string, { on, opened, lost }: Heard): Line {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const begin = () => {
    const begun = new EventSource(`/api/v1${path}`);
    source = begun;
    begun.onopen = () => opened?.();
    for (const [name, hear] of Object.entries(on)) {
      begun.addEventListener(name, (event) => hear(JSON.parse((event as MessageEvent).data)));
    }
    begun.onerror = () => {
      lost?.();
      // A browser tries again by itself, but not after an answer that was no stream.
      if (begun.readyState === EventSource.CLOSED) timer = setTimeout(begin, AGAIN);
    };
  };
  return {
    open: () => {
      if (!source) begin();
    },
    close: () => {
      clearTimeout(timer);
      source?.close();
      source = undefined;
    },
  };
}
