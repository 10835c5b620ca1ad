import { Checkbox, Group, Table, Text, UnstyledButton } from "@mantine/core";
import { memo, useCallback, useRef } from "react";

import type { JobFigures, JobRow } from "../../api/types";
import { HiddenHeader } from "../../components/HiddenHeader";
import { Icon } from "../../components/Icon";
import { JobLink } from "../../components/JobLink";
import { ScrollRegion } from "../../components/ScrollRegion";
import { JobStatusBadge } from "../../components/statuses";
import { useText } from "../../i18n";
import { JobMenu } from "./JobMenu";
import { JobRowBadges } from "./JobRowBadges";
import { type ListProps, toggle } from "./listProps";
import { NextFire } from "./NextFire";
import { Sparkline } from "./Sparkline";

export function JobsTable({ rows, figures, query, onChange, selected, onSelect }: ListProps) {
  const t = useText();
  const isAll = rows.every((row) => selected.has(row.jobName));
  const isSome = rows.some((row) => selected.has(row.jobName));
  const latest = useRef(selected);
  latest.current = selected;
  const onToggle = useCallback(
    (name: string) => onSelect(toggle(latest.current, name)),
    [onSelect],
  );

  const head = (key: string, label: string) => {
    const isSorted = query.sort === key;
    return (
      <Table.Th
        aria-sort={isSorted ? (query.order === "asc" ? "ascending" : "descending") : undefined}
        style={{ whiteSpace: "nowrap" }}
      >
        <UnstyledButton
          fz="sm"
          fw={600}
          onClick={() =>
            onChange({ sort: key, order: isSorted && query.order === "asc" ? "desc" : "asc" })
          }
        >
          {label} {isSorted ? (query.order === "asc" ? "↑" : "↓") : ""}
        </UnstyledButton>
      </Table.Th>
    );
  };

  return (
    <ScrollRegion label={t.nav.jobs}>
      <Table highlightOnHover miw={900}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={40}>
              <Checkbox
                size="xs"
                aria-label={t.jobs.selectPage}
                checked={isAll}
                indeterminate={isSome && !isAll}
                onChange={() =>
                  onSelect(isAll ? new Set() : new Set(rows.map((row) => row.jobName)))
                }
              />
            </Table.Th>
            {head("jobName", t.jobs.name)}
            {head("status", t.jobs.status)}
            {head("nextFireTime", t.jobs.next)}
            {figures && <Table.Th style={{ whiteSpace: "nowrap" }}>{t.jobs.lastRuns}</Table.Th>}
            {head("shardingTotalCount", t.jobs.shards)}
            {head("instanceCount", t.jobs.instances)}
            <Table.Th>{t.jobs.type}</Table.Th>
            <HiddenHeader width={44} label={t.jobs.actions} />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Row
              key={row.jobName}
              row={row}
              figures={figures === null ? null : figures.get(row.jobName)}
              isSelected={selected.has(row.jobName)}
              onToggle={onToggle}
            />
          ))}
        </Table.Tbody>
      </Table>
    </ScrollRegion>
  );
}

/** Re-rendered only when its own job changes. */
const Row = memo(function Row({
  row,
  figures,
  isSelected,
  onToggle,
}: {
  row: JobRow;
  /** Null if there is no history store. */
  figures: JobFigures | undefined | null;
  isSelected: boolean;
  onToggle: (name: string) => void;
}) {
  const t = useText();
  return (
    <Table.Tr bg={isSelected ? "var(--busy-soft)" : undefined} data-job={row.jobName}>
      <Table.Td>
        <Checkbox
          size="xs"
          aria-label={t.jobs.select(row.jobName)}
          checked={isSelected}
          onChange={() => onToggle(row.jobName)}
        />
      </Table.Td>
      <Table.Td maw={340}>
        <Group gap={8} wrap="nowrap">
          <JobLink name={row.jobName} />
          {row.label && (
            <Text span size="xs" c="dimmed" className="mono">
              {row.label}
            </Text>
          )}
        </Group>
        {row.problem ? (
          <Text size="xs" c="var(--bad)" lineClamp={2}>
            <Icon name="alert" size={12} /> {row.problem}
          </Text>
        ) : (
          <Text size="xs" c="dimmed" lineClamp={1}>
            {row.description}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Group gap={6}>
          <JobStatusBadge status={row.status} isDisabledInConfig={row.disabled} />
          <JobRowBadges row={row} />
        </Group>
      </Table.Td>
      <Table.Td>
        <NextFire row={row} />
      </Table.Td>
      {figures !== null && (
        <Table.Td>
          <Sparkline of={figures} />
        </Table.Td>
      )}
      <Table.Td className="numeric">{row.shardingTotalCount ?? "–"}</Table.Td>
      <Table.Td className="numeric">{row.instanceCount}</Table.Td>
      <Table.Td>
        <Text span size="sm" c="dimmed">
          {t.handlers[row.handler.kind]}
        </Text>
      </Table.Td>
      <Table.Td>
        <JobMenu row={row} />
      </Table.Td>
    </Table.Tr>
  );
});
