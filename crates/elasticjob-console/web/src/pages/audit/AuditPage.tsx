import { Box, Group, Select, Table, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { Fragment, useState } from "react";
import { useSearchParams } from "react-router";

import { useAudit, useRegistries } from "../../api/queries";
import type { AuditEntry } from "../../api/types";
import { useText } from "../../i18n";
import { Badge } from "../../parts/Badge";
import { HiddenHead } from "../../parts/HiddenHead";
import { Icon } from "../../parts/Icon";
import { PageHead } from "../../parts/PageHead";
import { Pager } from "../../parts/Pager";
import { Scroll } from "../../parts/Scroll";
import { Empty, Failure, Loading } from "../../parts/states";
import { When } from "../../parts/When";
import { AuditDetail } from "./AuditDetail";

const FILTERS = ["username", "action", "target"] as const;

/** Who changed what, and when. */
export function AuditPage() {
  const t = useText();
  const registries = useRegistries();
  const [params, setParams] = useSearchParams();
  const page = Math.max(1, Number(params.get("page")) || 1);
  const filters = Object.fromEntries([...params].filter(([key]) => key !== "page"));
  const [asked] = useDebouncedValue(filters, 250);
  const audit = useAudit({ ...asked, page });
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
      <PageHead title={t.nav.audit} about={t.audit.about} />
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
        {audit.isPending ? (
          <Loading />
        ) : !audit.data ? (
          <Failure error={audit.error} again={() => void audit.refetch()} />
        ) : audit.data.items.length === 0 ? (
          <Empty
            icon="audit"
            title={Object.keys(filters).length > 0 ? t.nothingFound : t.audit.none}
          >
            {t.audit.noneAbout}
          </Empty>
        ) : (
          <>
            <Entries entries={audit.data.items} />
            <Pager
              page={audit.data.page}
              pageSize={audit.data.pageSize}
              total={audit.data.total}
              onPage={toPage}
            />
          </>
        )}
      </Box>
    </>
  );
}

function Entries({ entries }: { entries: AuditEntry[] }) {
  const t = useText();
  const [open, setOpen] = useState<number | null>(null);
  return (
    <Scroll label={t.nav.audit}>
      <Table miw={760}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.audit.at}</Table.Th>
            <Table.Th>{t.audit.username}</Table.Th>
            <Table.Th>{t.audit.action}</Table.Th>
            <Table.Th>{t.audit.target}</Table.Th>
            <Table.Th>{t.audit.result}</Table.Th>
            <HiddenHead width={40} label={t.audit.details} />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {entries.map((entry) => (
            <Fragment key={entry.id}>
              <Table.Tr>
                <Table.Td>
                  <When at={entry.at} />
                </Table.Td>
                <Table.Td>
                  <Text size="sm">{entry.username}</Text>
                  <Text size="xs" c="dimmed">
                    {entry.via}
                    {entry.address && ` · ${entry.address}`}
                  </Text>
                </Table.Td>
                <Table.Td className="mono">{entry.action}</Table.Td>
                <Table.Td>
                  <Text size="sm" className="wrap">
                    {entry.target ?? "–"}
                  </Text>
                  {entry.registry && (
                    <Text size="xs" c="dimmed">
                      {entry.registry}
                    </Text>
                  )}
                </Table.Td>
                <Table.Td>
                  {entry.problem ? (
                    <Badge tone="bad">{t.audit.refused}</Badge>
                  ) : (
                    <Badge tone="ok">{t.audit.done}</Badge>
                  )}
                </Table.Td>
                <Table.Td>
                  <UnstyledButton
                    aria-expanded={open === entry.id}
                    aria-label={t.audit.details}
                    onClick={() => setOpen(open === entry.id ? null : entry.id)}
                  >
                    <Icon name={open === entry.id ? "down" : "right"} />
                  </UnstyledButton>
                </Table.Td>
              </Table.Tr>
              {open === entry.id && (
                <Table.Tr>
                  <Table.Td colSpan={6} bg="var(--row)">
                    <AuditDetail entry={entry} />
                  </Table.Td>
                </Table.Tr>
              )}
            </Fragment>
          ))}
        </Table.Tbody>
      </Table>
    </Scroll>
  );
}
