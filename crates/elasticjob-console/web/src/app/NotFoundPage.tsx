import { Anchor } from "@mantine/core";
import { Link } from "react-router";

import { EmptyState } from "../components/states";
import { useText } from "../i18n";

export function NotFoundPage() {
  const t = useText();
  return (
    <EmptyState icon="search" title={t.pageNotFound}>
      <Anchor component={Link} to="/">
        {t.toOverview}
      </Anchor>
    </EmptyState>
  );
}
