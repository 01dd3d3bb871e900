# functions of the driver's libdcmi that the fake has, in the form of the other tables
dcmi_init i4
dcmi_get_card_list i4 p p i4
dcmi_get_device_num_in_card i4 i4 p
dcmi_get_device_id_in_card i4 i4 p p p
dcmi_get_device_logic_id i4 p i4 i4
dcmi_get_card_id_device_id_from_logicid i4 p p u4
dcmi_get_device_phyid_from_logicid i4 u4 p
dcmi_get_device_chip_info i4 i4 i4 p
dcmi_get_device_health i4 i4 i4 p
dcmi_get_device_utilization_rate i4 i4 i4 i4 p
dcmi_get_device_hbm_info i4 i4 i4 p
dcmi_get_device_temperature i4 i4 i4 p
dcmi_get_device_power_info i4 i4 i4 p
dcmi_get_device_voltage i4 i4 i4 p
dcmi_get_device_errorcode_v2 i4 i4 i4 p p u4
dcmi_get_device_network_health i4 i4 i4 p
dcmi_get_dcmi_version i4 p i4
