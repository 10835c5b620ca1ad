import { useAct } from "../../api/act";
import { ask, query } from "../../api/client";
import { atServer, keys } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";

/** What can be done to a server, or to one job on it. */
export function useServerActs(server: string) {
  const t = useText();
  const registry = useRegistry();
  const at = atServer(registry, server);
  const touches = [keys.of(registry)];
  type Where = { job?: string };
  return {
    enable: useAct<Where, { jobNames: string[] }>({
      run: ({ job }) => ask("POST", `${at}/enable${query({ job })}`),
      done: ({ jobNames }) => t.servers.enabled(server, jobNames.length),
      touches,
    }),
    disable: useAct<Where, { jobNames: string[] }>({
      run: ({ job }) => ask("POST", `${at}/disable${query({ job })}`),
      done: ({ jobNames }) => t.servers.disabled(server, jobNames.length),
      touches,
    }),
    shutdown: useAct<Where, { instances: Record<string, string[]> }>({
      run: ({ job }) => ask("POST", `${at}/shutdown${query({ job })}`),
      done: ({ instances }) => t.servers.shutDown(server, Object.keys(instances).length),
      touches,
    }),
    remove: useAct<Where, { jobNames: string[] }>({
      run: ({ job }) => ask("DELETE", `${at}${query({ job })}`),
      done: ({ jobNames }) => t.servers.removed(server, jobNames.length),
      touches,
    }),
  };
}

export type ServerAct = keyof ReturnType<typeof useServerActs>;
