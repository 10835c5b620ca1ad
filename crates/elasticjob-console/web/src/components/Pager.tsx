import { Group, Pagination, Text } from "@mantine/core";

import { useText } from "../i18n";

/** Range of the shown rows and page buttons. */
export function Pager({
  page,
  pageSize,
  total,
  onPage,
}: {
  page: number;
  pageSize: number;
  total: number;
  onPage: (page: number) => void;
}) {
  const t = useText();
  const pages = Math.max(1, Math.ceil(total / pageSize));
  if (total === 0) return null;
  const from = (page - 1) * pageSize + 1;
  return (
    <Group justify="space-between" px="md" py="xs" gap="xs">
      <Text size="sm" c="dimmed" className="numeric">
        {t.rowsOf(from, Math.min(total, page * pageSize), total)}
      </Text>
      {pages > 1 && (
        <Pagination
          size="sm"
          total={pages}
          value={page}
          onChange={onPage}
          getItemProps={(each) => ({ "aria-label": t.pageNumber(each) })}
          getControlProps={(control) => ({ "aria-label": t.pagers[control] })}
        />
      )}
    </Group>
  );
}
