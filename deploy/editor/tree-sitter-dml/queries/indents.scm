; SPDX-License-Identifier: Apache-2.0
[(block) (arguments) (parameters)] @indent.begin
["}" ")"] @indent.branch
