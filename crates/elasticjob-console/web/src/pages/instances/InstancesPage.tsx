import { Box, Group, Table, Text } from "@mantine/core";
import { Link } from "react-router";

import { useInstances } from "../../api/queries";
import type { InstanceRow } from "../../api/types";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { useListParams } from "../../parts/listParams";
import { PageHead } from "../../parts/PageHead";
import { Pager } from "../../parts/Pager";
import { Scroll } from "../../parts/Scroll";
import { SearchField } from "../../parts/SearchField";
import { Empty, Failure, Loading } from "../../parts/states";
import { When } from "../../parts/When";

export function InstancesPage() {
  const t = useText();
  const registry = useRegistry();
  const { search, page, setSearch, setPage } = useListParams();
  const instances = useInstances(registry, search, page);
  return (
    <>
      <PageHead title={t.nav.instances} about={t.instances.about} />
      <Box className="card">
        <SearchField label={t.instances.search} value={search} onChange={setSearch} />
        {instances.isPending ? (
          <Loading />
        ) : !instances.data ? (
          <Failure error={instances.error} again={() => void instances.refetch()} />
        ) : instances.data.items.length === 0 ? (
          <Empty icon="instance" title={search ? t.nothingFound : t.instances.none}>
            {!search && t.instances.noneAbout}
          </Empty>
        ) : (
          <>
            <Scroll label={t.nav.instances}>
              <Table highlightOnHover miw={720}>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>{t.instances.name}</Table.Th>
                    <Table.Th>{t.instances.server}</Table.Th>
                    <Table.Th>{t.instances.language}</Table.Th>
                    <Table.Th>{t.instances.since}</Table.Th>
                    <Table.Th>{t.instances.jobs}</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {instances.data.items.map((each) => (
                    <Row key={each.instanceId} row={each} />
                  ))}
                </Table.Tbody>
              </Table>
            </Scroll>
            <Pager
              page={instances.data.page}
              pageSize={instances.data.pageSize}
              total={instances.data.total}
              onPage={setPage}
            />
          </>
        )}
      </Box>
    </>
  );
}

function Row({ row }: { row: InstanceRow }) {
  const t = useText();
  const to = useTo();
  const labels = Object.entries(row.detail?.labels ?? {}).filter(([key]) => key !== "name");
  const name = row.detail?.labels?.name;
  return (
    <Table.Tr data-instance={row.instanceId}>
      <Table.Td>
        {name && <Text fw={600}>{name}</Text>}
        <Text size={name ? "xs" : "sm"} c={name ? "dimmed" : undefined} className="mono wrap">
          {row.instanceId}
        </Text>
        {labels.length > 0 && (
          <Group gap={6}>
            {labels.map(([key, value]) => (
              <Text key={key} size="xs" c="dimmed">
                {key}={value}
              </Text>
            ))}
          </Group>
        )}
        {row.detail?.problem && (
          <Text size="xs" c="var(--bad)">
            {row.detail.problem}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Link to={to("servers", row.serverIp)} className="name">
          {row.serverIp}
        </Link>
      </Table.Td>
      <Table.Td>{row.language ? t.languages[row.language] : "–"}</Table.Td>
      <Table.Td>
        <When at={row.detail?.since} isRelative />
      </Table.Td>
      <Table.Td className="numeric">
        <Link
          className="name"
          to={`${to("jobs")}?${new URLSearchParams({ q: `instance:${row.instanceId}` })}`}
        >
          {t.instances.jobCount(row.jobNames.length)}
        </Link>
      </Table.Td>
    </Table.Tr>
  );
}
