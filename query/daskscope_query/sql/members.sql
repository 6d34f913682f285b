-- reads: members
-- One cluster's processes in the order in which they came; `role` narrows them.
SELECT *
FROM members
WHERE cluster = $cluster AND ($role::VARCHAR IS NULL OR role = $role)
ORDER BY joined_at, boot, no
LIMIT $limit OFFSET $offset
