-- reads: tasks, groups
-- One cluster's tasks, where a setting asked for them, earliest first; `group` narrows them to one group by name or id.
WITH named AS (SELECT boot, no, name, prefix FROM groups WHERE cluster = $cluster)
SELECT t.*, g.name, g.prefix
FROM tasks t
LEFT JOIN named g ON g.boot = t.boot AND g.no = t.group_no
WHERE t.cluster = $cluster
  AND ($group::VARCHAR IS NULL OR g.name = $group OR t.boot || '-' || t.group_no = $group)
ORDER BY t.start_at, t.boot, t.no
LIMIT $limit OFFSET $offset
