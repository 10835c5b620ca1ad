import { Box, Table, Text } from "@mantine/core";
import { Link } from "react-router";

import { useServers } from "../../api/queries";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { Badge } from "../../parts/Badge";
import { useListParams } from "../../parts/listParams";
import { HiddenHead } from "../../parts/HiddenHead";
import { PageHead } from "../../parts/PageHead";
import { Pager } from "../../parts/Pager";
import { Scroll } from "../../parts/Scroll";
import { SearchField } from "../../parts/SearchField";
import { Empty, Failure, Loading } from "../../parts/states";
import { ServerMenu } from "./ServerMenu";

export function ServersPage() {
  const t = useText();
  const to = useTo();
  const registry = useRegistry();
  const { search, page, setSearch, setPage } = useListParams();
  const servers = useServers(registry, search, page);
  return (
    <>
      <PageHead title={t.nav.servers} about={t.servers.about} />
      <Box className="card">
        <SearchField label={t.servers.search} value={search} onChange={setSearch} />
        {servers.isPending ? (
          <Loading />
        ) : !servers.data ? (
          <Failure error={servers.error} again={() => void servers.refetch()} />
        ) : servers.data.items.length === 0 ? (
          <Empty icon="server" title={search ? t.nothingFound : t.servers.none}>
            {!search && t.servers.noneAbout}
          </Empty>
        ) : (
          <>
            <Scroll label={t.nav.servers}>
              <Table highlightOnHover>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>{t.servers.address}</Table.Th>
                    <Table.Th>{t.servers.status}</Table.Th>
                    <Table.Th>{t.servers.instances}</Table.Th>
                    <Table.Th>{t.servers.jobs}</Table.Th>
                    <HiddenHead width={44} label={t.jobs.actions} />
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {servers.data.items.map((server) => (
                    <Table.Tr key={server.serverIp}>
                      <Table.Td>
                        <Link className="name" to={to("servers", server.serverIp)}>
                          {server.serverIp}
                        </Link>
                      </Table.Td>
                      <Table.Td>
                        <ServerBadge
                          jobs={server.jobNames.length}
                          disabled={server.disabledJobsNum}
                          instances={server.instances.length}
                        />
                      </Table.Td>
                      <Table.Td className="numeric">{server.instances.length}</Table.Td>
                      <Table.Td className="numeric">
                        {server.jobNames.length}
                        {server.disabledJobsNum > 0 && (
                          <Text span size="xs" c="dimmed" ml={6}>
                            {t.servers.disabledJobs(server.disabledJobsNum)}
                          </Text>
                        )}
                      </Table.Td>
                      <Table.Td>
                        <ServerMenu
                          server={server.serverIp}
                          jobs={server.jobNames.length}
                          instances={server.instances.length}
                        />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Scroll>
            <Pager
              page={servers.data.page}
              pageSize={servers.data.pageSize}
              total={servers.data.total}
              onPage={setPage}
            />
          </>
        )}
      </Box>
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
