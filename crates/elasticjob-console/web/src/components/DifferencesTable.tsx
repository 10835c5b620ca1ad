import { Table, Text } from "@mantine/core";

import type { Difference } from "../api/types";
import { useText } from "../i18n";
import { ScrollRegion } from "./ScrollRegion";

/** Configuration properties before and after a change. */
export function DifferencesTable({ differences }: { differences: Difference[] }) {
  const t = useText();
  return (
    <ScrollRegion label={t.differences.title}>
      <Table withTableBorder aria-label={t.differences.title}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t.differences.key}</Table.Th>
            <Table.Th>{t.differences.before}</Table.Th>
            <Table.Th>{t.differences.after}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {differences.map(({ key, stored, sent }) => (
            <Table.Tr key={key}>
              <Table.Td className="mono wrap">{key}</Table.Td>
              <Table.Td className="mono wrap" bg="var(--bad-soft)">
                <Value text={stored} />
              </Table.Td>
              <Table.Td className="mono wrap" bg="var(--ok-soft)">
                <Value text={sent} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollRegion>
  );
}

function Value({ text }: { text: string | null }) {
  const t = useText();
  return text === null || text === "" ? (
    <Text span size="sm" c="dimmed">
      {t.differences.unset}
    </Text>
  ) : (
    text
  );
}
