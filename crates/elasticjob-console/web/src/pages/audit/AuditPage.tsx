import { Alert, Box, Group, Select, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useSearchParams } from "react-router";

import { useAudit, useRegistries } from "../../api/queries";
import type { AuditEntry } from "../../api/types";
import { Badge } from "../../components/Badge";
import { DataTable } from "../../components/DataTable";
import { Icon } from "../../components/Icon";
import { PageHeader } from "../../components/PageHeader";
import { Pager } from "../../components/Pager";
import { QueryList } from "../../components/QueryList";
import { EmptyState } from "../../components/states";
import { Timestamp } from "../../components/Timestamp";
import { useText } from "../../i18n";
import { AuditDetail } from "./AuditDetail";

const FILTERS = ["username", "action", "target"] as const;

export function AuditPage() {
  const t = useText();
  const registries = useRegistries();
  const [params, setParams] = useSearchParams();
  const page = Math.max(1, Number(params.get("page")) || 1);
  const filters = Object.fromEntries([...params].filter(([key]) => key !== "page"));
  const [debounced] = useDebouncedValue(filters, 250);
  const audit = useAudit({ ...debounced, page });
  const change = (key: string, value: string) => {
    const next = new URLSearchParams(params);
    next.delete("page");
    if (value) next.set(key, value);
    else next.delete(key);
    setParams(next, { replace: true });
  };
  const toPage = (number: number) => {
    const next = new URLSearchParams(params);
    next.set("page", String(number));
    setParams(next);
  };
  return (
    <>
      <PageHeader title={t.nav.audit} about={t.audit.about} />
      {audit.data?.problem && (
        <Alert
          color="red"
          variant="light"
          mb="md"
          icon={<Icon name="alert" />}
          title={t.audit.notWritten}
        >
          {audit.data.problem}
        </Alert>
      )}
      <Box className="card">
        <Group p="sm" gap="sm" grow preventGrowOverflow={false}>
          <Select
            aria-label={t.audit.registry}
            placeholder={t.audit.registry}
            data={registries.data?.map((each) => each.name) ?? []}
            value={params.get("registry")}
            onChange={(value) => change("registry", value ?? "")}
            clearable
            clearButtonProps={{ "aria-label": t.config.clear }}
            miw={150}
          />
          {FILTERS.map((key) => (
            <TextInput
              key={key}
              aria-label={t.audit[key]}
              placeholder={t.audit[key]}
              value={params.get(key) ?? ""}
              onChange={(event) => change(key, event.currentTarget.value)}
              miw={150}
            />
          ))}
        </Group>
        <QueryList
          query={audit}
          isEmpty={({ items }) => items.length === 0}
          empty={
            <EmptyState
              icon="audit"
              title={Object.keys(filters).length > 0 ? t.nothingFound : t.audit.none}
            >
              {t.audit.noneAbout}
            </EmptyState>
          }
        >
          {(found) => (
            <>
              <Entries entries={found.items} />
              <Pager
                page={found.page}
                pageSize={found.pageSize}
                total={found.total}
                onPage={toPage}
              />
            </>
          )}
        </QueryList>
      </Box>
    </>
  );
}

function Entries({ entries }: { entries: AuditEntry[] }) {
  const t = useText();
  return (
    <DataTable
      label={t.nav.audit}
      width={760}
      rows={entries}
      keyOf={(entry) => entry.id}
      detail={(entry) => <AuditDetail entry={entry} />}
      columns={[
        { header: t.audit.at, cell: (entry) => <Timestamp at={entry.at} /> },
        {
          header: t.audit.username,
          cell: (entry) => (
            <>
              <Text size="sm">{entry.username}</Text>
              <Text size="xs" c="dimmed">
                {entry.via}
                {entry.address && ` · ${entry.address}`}
              </Text>
            </>
          ),
        },
        { header: t.audit.action, className: "mono", cell: (entry) => entry.action },
        {
          header: t.audit.target,
          cell: (entry) => (
            <>
              <Text size="sm" className="wrap">
                {entry.target ?? "–"}
              </Text>
              {entry.registry && (
                <Text size="xs" c="dimmed">
                  {entry.registry}
                </Text>
              )}
            </>
          ),
        },
        {
          header: t.audit.result,
          cell: (entry) =>
            entry.problem ? (
              <Badge tone="bad">{t.audit.refused}</Badge>
            ) : (
              <Badge tone="ok">{t.audit.done}</Badge>
            ),
        },
      ]}
    />
  );
}
