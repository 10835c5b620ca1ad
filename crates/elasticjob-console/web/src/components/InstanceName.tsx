import { Text, Tooltip } from "@mantine/core";

import type { Instance } from "../api/types";

/** The name from an instance's labels, or address and process of its id; the tooltip shows the full id. */
export function InstanceName({ id, known }: { id: string; known?: Instance[] }) {
  const name = known?.find((each) => each.instanceId === id)?.labels?.name;
  const [ip, rest] = id.split("@-@");
  return (
    <Tooltip label={id}>
      <Text span inherit className="mono wrap" tabIndex={-1}>
        {name ?? (rest ? `${ip} · ${rest}` : id)}
      </Text>
    </Tooltip>
  );
}
