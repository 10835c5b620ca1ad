import { Group, Text } from "@mantine/core";
import { Link } from "react-router";

import { queryString } from "../../api/client";
import { useInstances } from "../../api/queries";
import type { InstanceRow } from "../../api/types";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { DataTable } from "../../components/DataTable";
import { useListParams } from "../../components/listParams";
import { PagedList } from "../../components/PagedList";
import { PageHeader } from "../../components/PageHeader";
import { Timestamp } from "../../components/Timestamp";
import { useText } from "../../i18n";

export function InstancesPage() {
  const t = useText();
  const to = useRegistryLink();
  const registry = useRegistry();
  const params = useListParams();
  const instances = useInstances(registry, params.search, params.page);
  return (
    <>
      <PageHeader title={t.nav.instances} about={t.instances.about} />
      <PagedList query={instances} params={params} icon="instance" texts={t.instances}>
        {(items) => (
          <DataTable
            label={t.nav.instances}
            width={720}
            rows={items}
            keyOf={(row) => row.instanceId}
            attributes={(row) => ({ "data-instance": row.instanceId })}
            columns={[
              { header: t.instances.name, cell: (row) => <Name row={row} /> },
              {
                header: t.instances.server,
                cell: (row) => (
                  <Link to={to("servers", row.serverIp)} className="name">
                    {row.serverIp}
                  </Link>
                ),
              },
              {
                header: t.instances.language,
                cell: (row) => (row.language ? t.languages[row.language] : "–"),
              },
              {
                header: t.instances.since,
                cell: (row) => <Timestamp at={row.detail?.since} isRelative />,
              },
              {
                header: t.instances.jobs,
                className: "numeric",
                cell: (row) => (
                  <Link
                    className="name"
                    to={`${to("jobs")}${queryString({ q: `instance:${row.instanceId}` })}`}
                  >
                    {t.instances.jobCount(row.jobNames.length)}
                  </Link>
                ),
              },
            ]}
          />
        )}
      </PagedList>
    </>
  );
}

function Name({ row }: { row: InstanceRow }) {
  const labels = Object.entries(row.detail?.labels ?? {}).filter(([key]) => key !== "name");
  const name = row.detail?.labels?.name;
  return (
    <>
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
    </>
  );
}
