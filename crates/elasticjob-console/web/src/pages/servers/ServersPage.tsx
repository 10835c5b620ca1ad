import { Text } from "@mantine/core";
import { Link } from "react-router";

import { useServers } from "../../api/queries";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { Badge } from "../../components/Badge";
import { DataTable } from "../../components/DataTable";
import { useListParams } from "../../components/listParams";
import { PagedList } from "../../components/PagedList";
import { PageHeader } from "../../components/PageHeader";
import { useText } from "../../i18n";
import { ServerMenu } from "./ServerMenu";

export function ServersPage() {
  const t = useText();
  const to = useRegistryLink();
  const registry = useRegistry();
  const params = useListParams();
  const servers = useServers(registry, params.search, params.page);
  return (
    <>
      <PageHeader title={t.nav.servers} about={t.servers.about} />
      <PagedList query={servers} params={params} icon="server" texts={t.servers}>
        {(items) => (
          <DataTable
            label={t.nav.servers}
            rows={items}
            keyOf={(server) => server.serverIp}
            columns={[
              {
                header: t.servers.address,
                cell: (server) => (
                  <Link className="name" to={to("servers", server.serverIp)}>
                    {server.serverIp}
                  </Link>
                ),
              },
              {
                header: t.servers.status,
                cell: (server) => (
                  <ServerBadge
                    jobs={server.jobNames.length}
                    disabled={server.disabledJobsNum}
                    instances={server.instances.length}
                  />
                ),
              },
              {
                header: t.servers.instances,
                className: "numeric",
                cell: (server) => server.instances.length,
              },
              {
                header: t.servers.jobs,
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
                header: t.jobs.actions,
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
      </PagedList>
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
  if (instances === 0) return <Badge tone="warn">{t.servers.isEmpty}</Badge>;
  if (disabled > 0) return <Badge tone="warn">{t.servers.isPartly}</Badge>;
  return <Badge tone="ok">{t.servers.isUp}</Badge>;
}
