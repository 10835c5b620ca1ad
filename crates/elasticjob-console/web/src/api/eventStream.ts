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
  for (const connection of connections) if (connection !== wanted) connection.close();
  wanted?.open();
}

/** Opens an event stream. Returns a function that closes it. */
export function openStream(path: string, handlers: StreamHandlers): () => void {
  const connection = createConnection(path, handlers);
  if (connections.length === 0) document.addEventListener("visibilitychange", updateConnections);
  connections.push(connection);
  updateConnections();
  return () => {
    const index = connections.indexOf(connection);
    if (index < 0) return;
    connection.close();
    connections.splice(index, 1);
    if (connections.length === 0)
      document.removeEventListener("visibilitychange", updateConnections);
    updateConnections();
  };
}

function createConnection(path: string, { onEvent, onOpen, onLost }: StreamHandlers): Connection {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const connect = () => {
    const opened = new EventSource(`/api/v1${path}`);
    source = opened;
    opened.onopen = () => onOpen?.();
    for (const [name, handler] of Object.entries(onEvent)) {
      opened.addEventListener(name, (event) => handler(JSON.parse((event as MessageEvent).data)));
    }
    opened.onerror = () => {
      onLost?.();
      // The browser reconnects by itself, except after a response that is not an event stream.
      if (opened.readyState === EventSource.CLOSED) timer = setTimeout(connect, RECONNECT_DELAY);
    };
  };
  return {
    open: () => {
      if (!source) connect();
    },
    close: () => {
      clearTimeout(timer);
      source?.close();
      source = undefined;
    },
  };
}
