import { Group, Text } from "@mantine/core";
import { Link } from "react-router";

import { query } from "../../api/client";
import { useInstances } from "../../api/queries";
import type { InstanceRow } from "../../api/types";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { DataTable } from "../../parts/DataTable";
import { ListedPages } from "../../parts/ListedPages";
import { useListParams } from "../../parts/listParams";
import { PageHead } from "../../parts/PageHead";
import { When } from "../../parts/When";

export function InstancesPage() {
  const t = useText();
  const to = useTo();
  const registry = useRegistry();
  const params = useListParams();
  const instances = useInstances(registry, params.search, params.page);
  return (
    <>
      <PageHead title={t.nav.instances} about={t.instances.about} />
      <ListedPages asked={instances} params={params} icon="instance" words={t.instances}>
        {(items) => (
          <DataTable
            label={t.nav.instances}
            width={720}
            rows={items}
            keyOf={(row) => row.instanceId}
            marks={(row) => ({ "data-instance": row.instanceId })}
            columns={[
              { head: t.instances.name, cell: (row) => <Name row={row} /> },
              {
                head: t.instances.server,
                cell: (row) => (
                  <Link to={to("servers", row.serverIp)} className="name">
                    {row.serverIp}
                  </Link>
                ),
              },
              {
                head: t.instances.language,
                cell: (row) => (row.language ? t.languages[row.language] : "–"),
              },
              {
                head: t.instances.since,
                cell: (row) => <When at={row.detail?.since} isRelative />,
              },
              {
                head: t.instances.jobs,
                className: "numeric",
                cell: (row) => (
                  <Link
                    className="name"
                    to={`${to("jobs")}${query({ q: `instance:${row.instanceId}` })}`}
                  >
                    {t.instances.jobCount(row.jobNames.length)}
                  </Link>
                ),
              },
            ]}
          />
        )}
      </ListedPages>
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
