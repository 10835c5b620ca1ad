import { Text } from "@mantine/core";
import { Link } from "react-router";

import { useServers } from "../../api/queries";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { Badge } from "../../parts/Badge";
import { DataTable } from "../../parts/DataTable";
import { ListedPages } from "../../parts/ListedPages";
import { useListParams } from "../../parts/listParams";
import { PageHead } from "../../parts/PageHead";
import { ServerMenu } from "./ServerMenu";

export function ServersPage() {
  const t = useText();
  const to = useTo();
  const registry = useRegistry();
  const params = useListParams();
  const servers = useServers(registry, params.search, params.page);
  return (
    <>
      <PageHead title={t.nav.servers} about={t.servers.about} />
      <ListedPages asked={servers} params={params} icon="server" words={t.servers}>
        {(items) => (
          <DataTable
            label={t.nav.servers}
            rows={items}
            keyOf={(server) => server.serverIp}
            columns={[
              {
                head: t.servers.address,
                cell: (server) => (
                  <Link className="name" to={to("servers", server.serverIp)}>
                    {server.serverIp}
                  </Link>
                ),
              },
              {
                head: t.servers.status,
                cell: (server) => (
                  <ServerBadge
                    jobs={server.jobNames.length}
                    disabled={server.disabledJobsNum}
                    instances={server.instances.length}
                  />
                ),
              },
              {
                head: t.servers.instances,
                className: "numeric",
                cell: (server) => server.instances.length,
              },
              {
                head: t.servers.jobs,
                className: "numeric",
                cell: (server) => (
                  <>
                    {server.jobNames.length}
                    {server.disabledJobsNum > 0 && (
                      <Text span size="xs" c="dimmed" ml={6}>
                        {t.servers.disabledJobs(server.disabledJobsNum)}
                      </Text>
                    )}
                  </>
                ),
              },
              {
                head: t.jobs.actions,
                isActions: true,
                width: 44,
                cell: (server) => (
                  <ServerMenu
                    server={server.serverIp}
                    jobs={server.jobNames.length}
                    instances={server.instances.length}
                  />
                ),
              },
            ]}
          />
        )}
      </ListedPages>
    </>
  );
}

export function ServerBadge({
  jobs,
  disabled,
  instances,
}: {
  jobs: number;
  disabled: number;
  instances: number;
}) {
  const t = useText();
  if (disabled > 0 && disabled === jobs) return <Badge tone="off">{t.servers.isDisabled}</Badge>;
  if (instances === 0) return <Badge tone="warn">{t.servers.isGone}</Badge>;
  if (disabled > 0) return <Badge tone="warn">{t.servers.isPartly}</Badge>;
  return <Badge tone="ok">{t.servers.isUp}</Badge>;
}
