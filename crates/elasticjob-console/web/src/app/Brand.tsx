import { Group, Text } from "@mantine/core";
import { Link } from "react-router";

export function Brand() {
  return (
    <Link to="/" className="plain" aria-label="ElasticJob">
      <Group gap={8} wrap="nowrap">
        <img src="/icon.svg" width={24} height={24} alt="" />
        <Text fw={700} visibleFrom="sm">
          ElasticJob
        </Text>
      </Group>
    </Link>
  );
}
