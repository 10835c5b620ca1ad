/** How long a line that was refused is left alone. */
const RECONNECT_DELAY = 3_000;

interface StreamHandlers {
  /** By the name of the event: what it says. */
  onEvent: Record<string, (data: unknown) => void>;
  /** It begins, perhaps anew: there is no replay. */
  onOpen?: () => void;
  /** It is interrupted, and tried again. */
  onLost?: () => void;
}

interface Connection {
  open: () => void;
  close: () => void;
}

/**
 * The lines of this page. A browser has six connections to a host, for all of its tabs together: with one held by each
 * tab, the seventh would get no answer at all. So a page that nobody sees has no line, and one that is seen has one: the
 * one that was begun last.
 */
const connections: Connection[] = [];

function updateConnections() {
  const wanted = document.hidden ? undefined : connections.at(-1);
  for (const line of connections) if (line !== wanted) line.close();
  wanted?.open();
}

/** Listens to events of the server's until what it returns is called. */
export function openStream(path: string, heard: StreamHandlers): () => void {
  const line = createConnection(path, heard);
  if (connections.length === 0) document.addEventListener("visibilitychange", updateConnections);
  connections.push(line);
  updateConnections();
  return () => {
    const place = connections.indexOf(line);
    if (place < 0) return;
    line.close();
    connections.splice(place, 1);
    if (connections.length === 0)
      document.removeEventListener("visibilitychange", updateConnections);
    updateConnections();
  };
}

function createConnection(path: string, { onEvent, onOpen, onLost }: StreamHandlers): Connection {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const begin = () => {
    const begun = new EventSource(`/api/v1${path}`);
    source = begun;
    begun.onopen = () => onOpen?.();
    for (const [name, hear] of Object.entries(onEvent)) {
      begun.addEventListener(name, (event) => hear(JSON.parse((event as MessageEvent).data)));
    }
    begun.onerror = () => {
      onLost?.();
      // A browser tries again by itself, but not after an answer that was no stream.
      if (begun.readyState === EventSource.CLOSED) timer = setTimeout(begin, RECONNECT_DELAY);
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
