import { ActionIcon, Code, Popover, Stack, Table, Text, TextInput } from "@mantine/core";

import type { Problem } from "../../api/problem";
import { Icon } from "../../components/Icon";
import { useSearchText } from "../../components/searchText";
import { useText } from "../../i18n";

/** Search field of the jobs list, with help on its syntax. */
export function JobsSearch({
  value,
  problem,
  onChange,
}: {
  value: string;
  problem: Problem | null;
  onChange: (search: string) => void;
}) {
  const t = useText();
  const [text, type] = useSearchText(value, onChange);
  return (
    <TextInput
      data-search
      type="search"
      p="sm"
      pb={0}
      aria-label={t.jobs.search}
      placeholder={t.jobs.searchPlaceholder}
      value={text}
      onChange={(event) => type(event.currentTarget.value)}
      error={problem && `${problem.detail}${problem.hint ? ` – ${problem.hint}` : ""}`}
      leftSection={<Icon name="search" />}
      rightSection={<SearchHelp />}
    />
  );
}

function SearchHelp() {
  const t = useText();
  return (
    <Popover position="bottom-end" width={400} shadow="md" withinPortal trapFocus returnFocus>
      <Popover.Target>
        <ActionIcon variant="subtle" color="gray" c="dimmed" aria-label={t.jobs.searchHelp}>
          <Icon name="help" />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown maw="92vw" aria-label={t.jobs.searchHelp}>
        <Stack gap="xs">
          <Text size="sm">{t.jobs.searchAbout}</Text>
          <Table withRowBorders={false} verticalSpacing={3}>
            <Table.Tbody>
              {t.jobs.searchTerms.map(([term, about]) => (
                <Table.Tr key={term}>
                  <Table.Td>
                    <Code>{term}</Code>
                  </Table.Td>
                  <Table.Td>
                    <Text size="xs">{about}</Text>
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
