import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { useText } from "../i18n";
import { Empty } from "../parts/states";

export function Missing() {
  const t = useText();
  return (
    <Empty icon="search" title={t.missing}>
      <Anchor component={Link} to="/">
        {t.toStart}
      </Anchor>
    </Empty>
  );
}
