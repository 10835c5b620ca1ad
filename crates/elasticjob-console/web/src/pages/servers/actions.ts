import { useAction } from "../../api/action";
import { queryString, request } from "../../api/client";
import { queryKeys, serverPath } from "../../api/queries";
import { useRegistry } from "../../app/registry";
import { useText } from "../../i18n";

/** Actions for a server, or for one job on it. */
export function useServerActions(server: string) {
  const t = useText();
  const registry = useRegistry();
  const path = serverPath(registry, server);
  const invalidates = [queryKeys.of(registry)];
  type Target = { job?: string };
  return {
    enable: useAction<Target, { jobNames: string[] }>({
      send: ({ job }) => request("POST", `${path}/enable${queryString({ job })}`),
      successMessage: ({ jobNames }) => t.servers.enabled(server, jobNames.length),
      invalidates,
    }),
    disable: useAction<Target, { jobNames: string[] }>({
      send: ({ job }) => request("POST", `${path}/disable${queryString({ job })}`),
      successMessage: ({ jobNames }) => t.servers.disabled(server, jobNames.length),
      invalidates,
    }),
    shutdown: useAction<Target, { instances: Record<string, string[]> }>({
      send: ({ job }) => request("POST", `${path}/shutdown${queryString({ job })}`),
      successMessage: ({ instances }) => t.servers.shutDown(server, Object.keys(instances).length),
      invalidates,
    }),
    remove: useAction<Target, { jobNames: string[] }>({
      send: ({ job }) => request("DELETE", `${path}${queryString({ job })}`),
      successMessage: ({ jobNames }) => t.servers.removed(server, jobNames.length),
      invalidates,
    }),
  };
}

export type ServerAction = keyof ReturnType<typeof useServerActions>;
