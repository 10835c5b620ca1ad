/** Delay (ms) before a rejected connection is opened again. */
const RECONNECT_DELAY = 3_000;

interface StreamHandlers {
  /** Handlers by event name. */
  onEvent: Record<string, (data: unknown) => void>;
  /** The stream was opened or reopened; missed events are not replayed. */
  onOpen?: () => void;
  /** The stream was interrupted and will be reopened. */
  onLost?: () => void;
}

interface Connection {
  open: () => void;
  close: () => void;
}

/**
 * The streams of this page, of which at most one is open. A browser allows six connections per host over all tabs; if
 * every tab held one, the seventh tab would get no response. So a hidden page closes its streams, and a visible page
 * opens only the newest.
 */
const connections: Connection[] = [];

function updateConnections() {
  const wanted = document.hidden ? undefined : connections.at(-1);
  for (const line of connections) if (line !== wanted) line.close();
  wanted?.open();
}

/** Opens an event stream. Returns a function that closes it. */
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
      // The browser reconnects by itself, except after a response that is not an event stream.
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
